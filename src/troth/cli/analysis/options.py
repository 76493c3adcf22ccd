"""Declare the options that `troth check` and `troth fix` share, and read them."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.analysis.check import CheckRequest

__all__ = ["VARIABLES", "add_project_options", "add_rule_options", "request_of", "words"]

# Options that the environment may set, for whoever cannot change the command line: `TROTH_` and the name in capitals.
VARIABLES = (
    "--select",
    "--extend-select",
    "--ignore",
    "--confidence",
    "--baseline",
    "--output-format",
    "--quiet",
    "--exit-zero",
    "--config",
    "--isolated",
    "--no-foreign-comments",
    "--exclude",
    "--extend-exclude",
    "--force-exclude",
    "--python",
    "--jobs",
    "--no-cache",
    "--cache-dir",
)


def add_rule_options(add: Callable[..., argparse.Action]) -> None:
    """Declare the options that choose rules."""
    add("--select", action="append", metavar="RULES", help="only these rules: codes (TR101), families (TR1) or names")
    add(
        "--extend-select",
        action="append",
        metavar="RULES",
        help="add these rules, for example rules that are off by default",
    )
    add("--ignore", action="append", metavar="RULES", help="skip these rules")
    add(
        "--no-foreign-comments",
        action="store_true",
        help="ignore comments for other linters, such as `# noqa: RUF006` or `# type: ignore[unused-coroutine]`",
    )


def add_project_options(add: Callable[..., argparse.Action]) -> None:
    """Declare the options that say how the project is read."""
    add(
        "--exclude",
        action="append",
        metavar="PATTERNS",
        help="do not read these files; replaces `exclude` of the settings",
    )
    add(
        "--extend-exclude",
        action="append",
        metavar="PATTERNS",
        help="more files not to read; added to `exclude`",
    )
    add("--force-exclude", action="store_true", help="skip excluded files even if they are named")
    add(
        "--config",
        action="append",
        metavar="CONFIG",
        help="a settings file to use instead of the project's, or a setting in TOML that overrides both; repeatable",
    )
    add(
        "--isolated",
        action="store_true",
        help="ignore settings files and baselines that are not named on the command line",
    )
    add("--python", metavar="ENV", help="the environment whose packages are read (default: .venv, then the active one)")
    add(
        "--jobs", type=_count, default=0, metavar="N", help="number of worker processes (default: chosen automatically)"
    )
    add("--no-cache", action="store_true", help="do not use the cache")
    add("--cache-dir", metavar="DIR", type=Path, help="where facts are kept (default: .troth_cache in the project)")


def request_of(args: argparse.Namespace, cwd: Path, paths: tuple[str, ...]) -> "CheckRequest":
    """What these options ask for."""
    from troth.analysis.check import CheckRequest

    return CheckRequest(
        cwd=cwd,
        paths=paths,
        select=words(args.select) if args.select else None,
        extend_select=words(args.extend_select or []),
        ignore=words(args.ignore or []),
        exclude=words(args.exclude) if args.exclude else None,
        extend_exclude=words(args.extend_exclude or []),
        force_exclude=args.force_exclude,
        config=tuple(args.config or ()),
        isolated=args.isolated,
        foreign_comments=not args.no_foreign_comments,
        python=args.python,
        jobs=args.jobs,
        cache=not args.no_cache,
        cache_dir=args.cache_dir,
    )


def words(texts: list[str]) -> tuple[str, ...]:
    """The words of an option that was written with commas, repeatedly, or both."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)
