"""What to write instead of the options that users know from ruff and ty, and that Troth does not have."""

from collections.abc import Iterable

__all__ = ["HINTS", "hint_for"]

HINTS = {
    # Troth has it under another name.
    "--fix": "`troth fix` applies the safe fixes.",
    "--unsafe-fixes": "`troth fix --all` also applies the fixes that are only likely to be right.",
    "--show-fixes": "`troth fix` lists each repair; `-q` hides the list.",
    "--diff": "`troth fix --diff` shows the repairs as a diff.",
    "--fix-only": "`troth fix -q --exit-zero` repairs quietly.",
    "--ignore-noqa": "`--no-foreign-comments` ignores comments for other linters.",
    "--json": "Write `--output-format json`.",
    "--format": "Write `--output-format FORMAT`.",
    "--output-file": "`-o FORMAT:FILE` writes a format to a file.",
    "--add-noqa": "`--add-allow` writes a comment beside each finding.",
    "--add-ignore": "`--add-allow` writes a comment beside each finding.",
    "--update-baseline": "`--write-baseline` writes the current findings to the baseline.",
    "--per-file-ignores": "Put it into `per-file-ignores` in the settings.",
    "--extend-per-file-ignores": "Put it into `per-file-ignores` in the settings.",
    "--config-file": "`--config FILE` names a settings file.",
    "--project": "Name the folder: `troth check FOLDER`. Troth finds the project around it.",
    "--extra-search-path": "`source-roots` in the settings names further folders.",
    "--no-respect-gitignore": "Name the file or folder: a file that is named is checked even if `.gitignore` hides it.",
    "--no-respect-ignore-files": "Name the file or folder: a file that is named is checked even if `.gitignore` "
    "hides it.",
    "--error": "`--select RULES` chooses rules; every finding makes the exit code 1.",
    "--warn": "Troth has no warnings: `--ignore RULES` skips rules, `--confidence certain` skips likely findings.",
    "--exit-zero-on-warning": "`--confidence certain` reports only certain findings, and fails only for them.",
    "--silent": "Write `troth check -q > /dev/null`: the exit code shows the result.",
    "--verbose": "`--show-files` and `--show-settings` say what is checked, and how.",
    "-v": "`--show-files` and `--show-settings` say what is checked, and how.",
    "-w": "Write `--watch`.",
    "-W": "Write `--watch`.",
    "-e": "Write `--exit-zero`.",
    "-n": "Write `--no-cache`.",
    "-s": "Write `troth check -q > /dev/null`: the exit code shows the result.",
    "-c": "Write `--config 'KEY = VALUE'`.",
    # Troth has no use for it, and says why.
    "--fixable": "Choose rules with `troth fix --select RULES`: selecting a rule selects its fix.",
    "--unfixable": "Skip rules with `troth fix --ignore RULES`.",
    "--extend-fixable": "Choose rules with `troth fix --extend-select RULES`.",
    "--exit-non-zero-on-fix": "`troth fix --diff` exits with 1 if something would change.",
    "--error-on-warning": "This is always the case: every finding makes the exit code 1.",
    "--preview": "There are no rules in preview; switch on rules that are off by default with `--extend-select`.",
    "--target-version": "Troth has no setting for this: every supported syntax is accepted.",
    "--python-version": "Every supported syntax is accepted; `--python ENV` names the environment of the project.",
    "--python-platform": "Troth has no setting for this: the code for all platforms is read.",
    "--typeshed": "Troth's knowledge of the standard library is built in.",
    "--extension": "Check a file with another suffix with `troth check - --stdin-filename FILE.py`.",
    "--respect-gitignore": "This is always the case, except for files that are named.",
    "--respect-ignore-files": "This is always the case, except for files that are named.",
    "--exclude-scripts": "Name the scripts in `--extend-exclude`.",
    "--no-progress": "`-q` hides the progress, which is only shown on terminals.",
}


def hint_for(words: Iterable[str]) -> str:
    """The advice for the first of the words that is an option of another tool; empty if none is."""
    return next((HINTS[name] for word in words if (name := word.partition("=")[0]) in HINTS), "")
