"""The options of `ruff check` and `ty check`, and what Troth has in their place."""

from troth.cli.analysis.foreign_options import HINTS

__all__ = ["RUFF", "TY", "options_table"]

# As `ruff check --help` of 0.17.4 lists them.
_RUFF = """
--fix --unsafe-fixes --show-fixes --diff --watch --fix-only --ignore-noqa --output-format --output-file --target-version
--preview --extension --statistics --add-noqa --add-ignore --show-files --show-settings --help --select --ignore
--extend-select --per-file-ignores --extend-per-file-ignores --fixable --unfixable --extend-fixable --exclude
--extend-exclude --respect-gitignore --force-exclude --no-cache --cache-dir --stdin-filename --exit-zero
--exit-non-zero-on-fix --verbose --quiet --silent --config --isolated --color
"""
# As `ty check --help` of 0.0.100 lists them.
_TY = """
--fix --add-ignore --baseline --update-baseline --project --python --typeshed --extra-search-path --python-version
--python-platform --verbose --quiet --config --config-file --output-format --error-on-warning --exit-zero
--exit-zero-on-warning --watch --help --error --warn --ignore --respect-ignore-files --force-exclude --exclude-scripts
--exclude --no-progress --color
"""


RUFF, TY = _RUFF.split(), _TY.split()


def options_table() -> str:
    """The rows of the page."""
    rows = ["| option | of | Troth |", "|---|---|---|"]
    for option in sorted({*RUFF, *TY}):
        tools = ", ".join(name for name, options in (("ruff", RUFF), ("ty", TY)) if option in options)
        hint = HINTS.get(option, "").replace("|", "\\|")
        rows.append(f"| `{option}` | {tools} | {f'refused: {hint}' if hint else 'there'} |")
    return "\n".join(rows) + "\n"
