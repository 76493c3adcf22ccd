"""What to write instead of the options that users know from ruff and ty, and that Troth does not have."""

from collections.abc import Iterable

__all__ = ["HINTS", "hint_for"]

HINTS = {
    # Troth has it under another name.
    "--fix": "`troth fix` repairs what is sure.",
    "--unsafe-fixes": "`troth fix --all` also repairs what is only likely right.",
    "--show-fixes": "`troth fix` lists each repair; `-q` leaves that out.",
    "--diff": "`troth fix --diff` shows the repairs as a diff.",
    "--fix-only": "`troth fix -q --exit-zero` repairs quietly.",
    "--ignore-noqa": "`--no-foreign-comments` leaves comments for other linters out of account.",
    "--json": "Write `--output-format json`.",
    "--format": "Write `--output-format FORMAT`.",
    "--output-file": "`-o FORMAT:FILE` writes a format to a file.",
    "--add-noqa": "`--add-allow` writes a comment beside each finding.",
    "--add-ignore": "`--add-allow` writes a comment beside each finding.",
    "--update-baseline": "`--write-baseline` writes the findings of today into the baseline.",
    "--per-file-ignores": "Put it into `per-file-ignores` in the settings.",
    "--extend-per-file-ignores": "Put it into `per-file-ignores` in the settings.",
    "--config-file": "`--config FILE` names a settings file.",
    "--project": "Name the folder: `troth check FOLDER`. The project around it is found by itself.",
    "--extra-search-path": "`source-roots` in the settings names further folders.",
    "--no-respect-gitignore": "Name the file or folder: what is named is checked though `.gitignore` hides it.",
    "--no-respect-ignore-files": "Name the file or folder: what is named is checked though `.gitignore` hides it.",
    "--error": "`--select RULES` chooses rules; every finding makes the exit code 1.",
    "--warn": "There are no warnings: `--ignore RULES` leaves rules out, `--confidence certain` what is only likely.",
    "--exit-zero-on-warning": "`--confidence certain` reports, and fails for, what is certain alone.",
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
    "--fixable": "Choose rules with `troth fix --select RULES`: a rule's fix is wanted where the rule is.",
    "--unfixable": "Leave rules out with `troth fix --ignore RULES`.",
    "--extend-fixable": "Choose rules with `troth fix --extend-select RULES`.",
    "--exit-non-zero-on-fix": "`troth fix --diff` exits with 1 if something would change.",
    "--error-on-warning": "This is always so: every finding makes the exit code 1.",
    "--preview": "There are no rules in preview; those that are off by default are switched on with `--extend-select`.",
    "--target-version": "Troth has no setting for it: syntax is read as it stands.",
    "--python-version": "Syntax is read as it stands; `--python ENV` names the environment of the project.",
    "--python-platform": "Troth has no setting for it: the code for all platforms is read.",
    "--typeshed": "What Troth knows of the standard library comes with it.",
    "--extension": "Source of another suffix goes in by `troth check - --stdin-filename FILE.py`.",
    "--respect-gitignore": "This is always so, but for files that are named.",
    "--respect-ignore-files": "This is always so, but for files that are named.",
    "--exclude-scripts": "Name the scripts in `--extend-exclude`.",
    "--no-progress": "`-q` leaves the progress out; it is only shown on terminals.",
}


def hint_for(words: Iterable[str]) -> str:
    """The advice for the first of the words that is an option of another tool; empty if none is."""
    return next((HINTS[name] for word in words if (name := word.partition("=")[0]) in HINTS), "")
