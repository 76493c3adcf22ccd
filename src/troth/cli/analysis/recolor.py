"""Carry out `troth recolor`."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.analysis.options import words
from troth.cli.command import Command, Example
from troth.cli.diff import say_diff
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.cli.switches import stop_at_bugs, switch
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.check import Prepared
    from troth.analysis.crash import Crash
    from troth.analysis.edits.write import Change
    from troth.analysis.findings import Finding
    from troth.analysis.recolor.decisions import Decisions
    from troth.analysis.recolor.plan import Plan

__all__ = ["COMMAND", "refuse_dirty"]

_FURTHEST = True  # `--cascade` alone: all callers, and nothing stops it that can be told instead


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth recolor`."""
    add = parser.add_argument
    add(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="package.module:Class, :function or :Class.method; a path works too",
    )
    add(
        "--to",
        choices=("sync", "async", "both"),
        help="the color to change to (default: show the current colors); both: an async class gets a sync twin",
    )
    add(
        "--check",
        action="store_true",
        help="with --to both: change nothing; exit with 1 if a twin differs from its source",
    )
    add("--plan", action="store_true", help="show what would change, and change nothing")
    add("--diff", action="store_true", help="show the change as a diff, and change nothing")
    add("--methods", action="append", metavar="NAMES", help="only these methods of a class")
    add("--needless", action="store_true", help="TARGETs are folders: make needlessly async functions sync")
    add(
        "--cascade",
        nargs="?",
        choices=("callers", "tests", "all"),
        const=_FURTHEST,
        default="none",
        help="also convert callers that no longer need (or now need) to await: outside tests, in tests, or all; "
        "without a word: `all`, with `--mark` and `--boundary auto`",
    )
    add(
        "--boundary",
        action="append",
        metavar="WHERE",
        help="with --to async: sync functions or modules that run the coroutine; auto: all that have to stay sync",
    )
    add(
        "--run-with",
        choices=("asyncio.run", "trio.run", "anyio.run", "bridge.run"),
        help="the function that runs the coroutine there (default: the one of the async library that the project uses)",
    )
    add("--properties", action="store_true", help="with --to async: a property becomes a method, `await x.size()`")
    add(
        "--decide",
        metavar="FILE",
        type=Path,
        help="answers to the questions of a plan, one `PLACE: recolor|leave|boundary` per line",
    )
    add(
        "--leave-unknown",
        action="store_true",
        help="change everything else even if some calls of the same name could not be resolved",
    )
    add(
        "--mark",
        action="store_true",
        help="where it is unclear whether something has to change, write a comment and change everything else",
    )
    add(
        "--in",
        dest="scope",
        action="append",
        metavar="PATH",
        help="change only files below this folder (default: the project)",
    )
    add("--verify", metavar="CMD", help="run this afterwards; if it fails, everything is restored")
    add("--coverage", metavar="FILE", type=Path, help="a coverage file: name the calls that no test runs")
    add("--output-format", choices=("text", "json"), default="text", help="how the plan is shown")
    add("--all", action="store_true", help="show every entry of the plan")
    add("--allow-dirty", action="store_true", help="also change files with uncommitted edits")


def run(args: argparse.Namespace) -> int:
    """Plan; unless only the plan is wanted, change all files or none."""
    from troth.analysis.check import CheckRequest, prepare
    from troth.analysis.edits.write import recover
    from troth.analysis.recolor.recolor import Wish, plan_recolor, plan_surface
    from troth.cli.crash import incomplete

    stop_at_bugs()
    cwd = Path.cwd()
    prepared = prepare(CheckRequest(cwd=cwd, cache=not switch("TROTH_NO_CACHE")))
    root = prepared.root.path
    if put_back := recover(root):
        sys.stderr.write(f"An earlier change was interrupted; these files were restored: {', '.join(put_back)}\n")
    if args.check and args.to != "both":
        raise MisuseError("`--check` requires `--to both`.\nNothing was changed.\nOmit it, or use `--plan`.")
    if args.to == "both":
        from troth.cli.analysis.recolor_both import run_both

        return run_both(args, prepared, [_target(target, cwd, root) for target in args.targets])
    wish = Wish(
        tuple((_inner if args.needless else _target)(target, cwd, root) for target in args.targets),
        words(args.methods or []),
        "all" if args.cascade is _FURTHEST else args.cascade,
        tuple(_target(target, cwd, root) for target in _boundary(args)),
        args.run_with,
        None if args.coverage is None else cwd / args.coverage,
        tuple(_inner(path, cwd, root) for path in args.scope or ()),
        _decisions(args.decide),
        args.properties or ("targets" if args.cascade is _FURTHEST else False),
        mark=args.mark or args.cascade is _FURTHEST,
        needless=args.needless,
    )
    if args.to is None and not args.needless:
        from troth.analysis.recolor.report import surface_as_json, surface_lines

        surface = plan_surface(prepared.scope.project, wish)
        _show(args, surface_lines(surface), lambda: surface_as_json(surface))
        crashes = surface.to_async.crashes  # made last, so that it knows of all
        return incomplete(crashes, prepared) if crashes else Exit.CLEAN
    from troth.analysis.recolor.report import as_json, text_lines

    plan = plan_recolor(prepared.scope.project, wish, args.to or "sync")
    if plan.crashes:
        _show(args, text_lines(plan, everything=args.all), lambda: as_json(plan))
        if not args.plan:
            sys.stderr.write("Nothing was changed, because these may not be all the places.\n")
        return incomplete(plan.crashes, prepared)
    try:
        return _carry_out(args, plan, prepared, wish.decisions)
    finally:
        if idle := wish.decisions.idle:
            sys.stderr.write(f"Decisions for places that are not in the plan: {', '.join(idle)}\n")


def _boundary(args: argparse.Namespace) -> Sequence[str]:
    """Where plain code runs the coroutine: as named, else wherever it has to if all callers follow."""
    return args.boundary or (("auto",) if args.cascade is _FURTHEST and args.to == "async" else ())


def _show(args: argparse.Namespace, lines: Iterable[str], document: Callable[[], dict[str, object]]) -> None:
    if args.output_format == "json":
        from json import dumps

        say([dumps(document(), indent=2)])
    else:
        say(lines)


def _carry_out(args: argparse.Namespace, plan: "Plan", prepared: "Prepared", decisions: "Decisions") -> int:
    from troth.analysis.crash import kinds
    from troth.analysis.recolor.check_plan import awaiting_lost, not_in, rewritten, split_blocking
    from troth.analysis.recolor.report import as_json, text_lines
    from troth.analysis.recolor.verify import carried_out
    from troth.cli.crash import incomplete

    unknown = [site for site in plan.unknown if site.tree.view.kind in {"code", "notebook"}]
    if not plan.is_clear or (unknown and not args.leave_unknown):
        _show(args, text_lines(plan, everything=args.all), lambda: as_json(plan))
        if not args.plan:
            sys.stderr.write("Nothing was changed: decide the places listed above first.\n")
        return Exit.FOUND
    root = prepared.root.path
    changes = rewritten(root, plan.edits)
    crashes: list[tuple[Crash, ...]] = []  # before the change and after it
    look = _look(prepared, plan, changes, crashes)
    before, after = look({}), look({change.path: change.after for change in changes})
    lost: Sequence[Finding] = ()
    if plan.to == "async":
        changes, lost = awaiting_lost(plan, changes, after)
        after = look({change.path: change.after for change in changes}) if lost else after
    fresh, blocking = split_blocking(plan, not_in(before, after))
    marked = {(place.path, place.text) for place in plan.marked}
    accepted = [
        finding
        for finding in fresh
        if decisions.of(*_decided_at(finding)) == "leave" or (finding.span.path, finding.subject) in marked
    ]
    fresh = tuple(finding for finding in fresh if finding not in accepted)
    if not kinds(crashes[-1]) <= kinds(crashes[0]):
        sys.stderr.write("Nothing was changed, because the files could not be checked after the change.\n")
        return incomplete(crashes[-1], prepared)
    if fresh and args.plan:
        _show(args, text_lines(plan, everything=args.all), lambda: as_json(plan))
    if fresh:
        shown = "\n".join(
            f"{row}\n    decided by  {':'.join(_decided_at(finding)[:2])}: leave"
            for row, finding in zip(_rows(fresh), fresh, strict=True)
        )
        raise MisuseError(
            f"After the change, `troth check` would report new findings:\n{shown}\n"
            "Nothing was changed.\nRepair these places first, or also recolor what they call (`--cascade`)."
        )
    if args.plan:
        lines = [*text_lines(plan, everything=args.all), *_accepted(accepted), *_blocking(blocking)]
        _show(args, lines, lambda: as_json(plan))
        return Exit.CLEAN
    if args.diff:
        say_diff(changes)
        return Exit.CLEAN
    refuse_dirty(root, [change.path for change in changes], allow=args.allow_dirty)
    carried_out(root, changes, args.verify, prepared.request.cwd)
    lines = [
        *text_lines(plan, everything=args.all),
        *_awaited(lost),
        *_accepted(accepted),
        *_blocking(blocking),
        *_changed_files(changes, args.verify),
    ]
    _show(args, lines, lambda: as_json(plan) | {"awaited": [_place(finding) for finding in lost]})
    return Exit.CLEAN


def _decisions(path: Path | None) -> "Decisions":
    from troth.analysis.recolor.decisions import NOTHING_DECIDED, read_decisions

    if path is None:
        return NOTHING_DECIDED
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(
            f"The decisions cannot be read: {path}: {error}.\nNothing was changed.\n"
            "Name a text file with one `PLACE: ANSWER` per line."
        ) from error
    return read_decisions(text, str(path))


def _awaited(lost: Sequence["Finding"]) -> list[str]:
    """The calls that were lost and will now run."""
    if not lost:
        return []
    rows = [f"  {finding.span.path}:{finding.span.line}  {finding.subject}" for finding in lost]
    return [f"{len(lost):,} lost call{'' if len(lost) == 1 else 's'} awaited, and will now run", *rows]


def _blocking(found: Sequence["Finding"]) -> list[str]:
    """The calls that hold up the loop from now on."""
    if not found:
        return []
    calls = f"{len(found):,} blocking call{'' if len(found) == 1 else 's'}"
    rows = [f"  {finding.span.path}:{finding.span.line}  {finding.message}" for finding in found]
    return [f"{calls} in what is async now; `troth fix` repairs what it can", *rows]


def _accepted(findings: Sequence["Finding"]) -> list[str]:
    """What `troth check` finds from now on at places that somebody has decided to leave, or that have a comment."""
    if not findings:
        return []
    count = f"{len(findings):,} finding{'' if len(findings) == 1 else 's'}"
    return [f"{count} from now on, at places that are left as they are", *_rows(findings)]


def _rows(findings: Sequence["Finding"]) -> list[str]:
    return [f"  {finding.span.path}:{finding.span.line}  {finding.code} {finding.message}" for finding in findings]


def _decided_at(finding: "Finding") -> tuple[str, str, int]:
    """Path, function and line of a finding, as a file of decisions names them."""
    from troth.analysis.recolor.decisions import TOP

    return finding.span.path, finding.symbol or TOP, finding.span.line


def _place(finding: "Finding") -> dict[str, object]:
    return {"path": finding.span.path, "line": finding.span.line, "text": finding.subject}


def _changed_files(changes: Sequence["Change"], verify: str | None) -> list[str]:
    files = f"{len(changes):,} file{'' if len(changes) == 1 else 's'}"
    return [f"Changed {files}" + (f"; `{verify}` succeeds" if verify else "")]


def _look(
    prepared: "Prepared", plan: "Plan", changes: Sequence["Change"], crashes: "list[tuple[Crash, ...]]"
) -> Callable[[Mapping[str, bytes]], Sequence["Finding"]]:
    """Checks the project, wherever in it the command is run, with the given files in place of those on disk.

    A call that is plain now can only be missed where its name is said. A call that has to be awaited can be missed
    further up as well, where somebody runs what leads to it: then the whole project is looked at.
    """
    from troth.analysis.check import CheckRequest, check, prepare

    request, root = prepared.request, prepared.root.path
    paths = {*plan.concerned, *(change.path for change in changes if change.path.endswith((".py", ".pyi", ".ipynb")))}
    checked_paths = (
        (str(root),) if plan.to == "async" or not paths else tuple(str(root / path) for path in sorted(paths))
    )
    whole = prepare(CheckRequest(cwd=request.cwd, paths=checked_paths, cache=request.cache))
    if whole.root.path != root:  # these files alone would be taken for a project of their own
        whole = prepare(CheckRequest(cwd=request.cwd, paths=(str(root),), cache=request.cache))

    def look(overlay: Mapping[str, bytes]) -> Sequence["Finding"]:
        report = check(whole._replace(overlay={**whole.overlay, **overlay}))
        crashes.append(report.crashes)
        return report.places

    return look


def refuse_dirty(root: Path, paths: Sequence[str], *, allow: bool) -> None:
    """Stop where a file that would be changed has edits that are not committed."""
    from troth.analysis.fix.worktree import uncommitted

    dirty = [] if allow else uncommitted(root, paths)
    if dirty:
        names = ", ".join(dirty[:3]) + (f" and {len(dirty) - 3} more" if len(dirty) > 3 else "")
        raise MisuseError(
            f"Files that would be changed have uncommitted edits: {names}.\n"
            "Nothing was changed, because your edits and this change could not be separated afterwards.\n"
            "Commit or stash them, or use `--allow-dirty`; `--diff` shows the change without making it."
        )


def _target(text: str, cwd: Path, root: Path) -> str:
    """A target whose module is given as a path is named from the root of the project."""
    where, colon, symbol = text.partition(":")
    if where.endswith((".py", ".pyi")):
        where = _inner(where, cwd, root)
    return f"{where}{colon}{symbol}"


def _inner(path: str, cwd: Path, root: Path) -> str:
    inner = os.path.relpath(cwd / path, root).replace(os.sep, "/")
    return "" if inner == "." else inner


COMMAND = Command(
    summary="change the color of a function or a class, with every call",
    description=(
        "Makes a function, a method or a class's whole surface sync or async, and changes every call with it: code,\n"
        "tests, examples, docstrings, Markdown and notebooks. All files are written, or none; where a decision is\n"
        "needed, it is listed and nothing is written."
    ),
    examples=(
        Example("troth recolor shop.orders:OrderStore", "the colors of a class, and what each change would need"),
        Example("troth recolor shop.orders:OrderStore --to sync --plan", "what would change"),
        Example("troth recolor shop.orders:OrderStore --to sync", "do it"),
        Example("troth recolor --needless src --plan", "what is needlessly async in a folder"),
        Example("troth recolor shop.api:AsyncClient --to both --check", "whether the sync twin matches its source"),
        Example(
            "troth recolor shop.orders:OrderStore --to sync --cascade all --verify 'pytest -q'",
            "and convert the callers too",
        ),
        Example("troth recolor shop.db:Db.fetch --to async --cascade", "sync to async, as far as possible"),
        Example(
            "troth recolor shop.db:Db.fetch --to async --cascade callers --boundary shop.cli:main", "up to a boundary"
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
