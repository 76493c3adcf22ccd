"""Find where a report goes: several formats in one run, to files and to stdout."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from troth.cli.pipe import say
from troth.errors import MisuseError, RunError

if TYPE_CHECKING:
    from troth.analysis.report.content import CheckReport
    from troth.analysis.report.text import Paint

__all__ = ["FORMATS", "OutputFile", "parse_outputs", "write"]

FORMATS = ("text", "concise", "agent", "json", "sarif", "github", "gitlab", "junit")


class OutputFile(NamedTuple):
    """A format and the file it is written to; None is stdout."""

    format: str
    file: Path | None


def parse_outputs(specs: Sequence[str], output_format: str | None, cwd: Path) -> list[OutputFile]:
    """Read `FORMAT:FILE` for each of `-o`. Text goes to stdout unless another format takes it."""
    outputs = [_parse(spec, cwd) for spec in specs]
    if output_format is not None:
        outputs.insert(0, OutputFile(output_format, None))
    to_stdout = [output.format for output in outputs if output.file is None]
    if len(to_stdout) > 1:
        raise MisuseError(
            f"Both {to_stdout[0]} and {to_stdout[1]} are sent to stdout, where they would be mixed.\n"
            "Nothing was checked.\nSend one of them to a file: `-o sarif:troth.sarif -o github:-`."
        )
    return outputs if to_stdout else [*outputs, OutputFile("text", None)]


def write(
    outputs: Iterable[OutputFile], report: "CheckReport", *, statistics: bool = False, quiet: bool = False
) -> None:
    """Write the report to all its places, files first: a reader of stdout who leaves takes nothing from them.

    `quiet` leaves findings alone in the formats for people.
    """
    for output in sorted(outputs, key=lambda destination: destination.file is None):
        lines = _render(output, report, statistics=statistics, quiet=quiet)
        if output.file is None:
            say(lines)
            continue
        beside = output.file.with_name(f"{output.file.name}.{os.getpid()}.new")
        try:
            text = "".join(f"{line}\n" for line in lines)
            beside.write_text(text, encoding="utf-8", errors="backslashreplace")
            beside.replace(output.file)
        except OSError as problem:
            beside.unlink(missing_ok=True)
            raise RunError(
                f"The report could not be written to `{output.file}`: {problem.strerror or problem}.\n"
                "The check is complete; no other file was changed.\n"
                "Name a file in a folder that can be written: `-o sarif:FILE`."
            ) from problem


def _render(output: OutputFile, report: "CheckReport", *, statistics: bool, quiet: bool) -> Iterable[str]:
    """The lines of one format; its module is imported here, so that nobody pays for the others."""
    name = output.format
    if name == "json":
        from troth.analysis.report.json import render as render_json

        return [render_json(report)]
    if name == "sarif":
        from troth.analysis.report.sarif import render as render_sarif

        return [render_sarif(report)]
    if name == "github":
        from troth.analysis.report.github import render as render_github

        return render_github(report)
    if name == "gitlab":
        from troth.analysis.report.gitlab import render as render_gitlab

        return [render_gitlab(report)]
    if name == "junit":
        from troth.analysis.report.junit import render as render_junit

        return render_junit(report)
    if statistics:
        from troth.analysis.report.statistics import render as render_statistics

        return render_statistics(report, quiet=quiet)
    from troth.analysis.report.text import no_paint

    paint: Paint = no_paint
    if output.file is None:
        from troth.cli.terminal import Style

        paint = Style(sys.stdout)
    if name == "agent":
        from troth.analysis.report.agent import render as render_agent

        return render_agent(report)
    if name == "concise":
        from troth.analysis.report.concise import render as render_concise

        return render_concise(report, paint=paint, quiet=quiet)
    from troth.analysis.report.text import render as render_text
    from troth.cli.terminal import width_of

    width = width_of(sys.stdout) if output.file is None else None
    return render_text(report, paint=paint, frames=width is not None, quiet=quiet, width=width)


def _parse(spec: str, cwd: Path) -> OutputFile:
    name, colon, place = spec.partition(":")
    if not colon and name not in FORMATS:
        raise _refused(f"`-o {spec}` names no format.")
    if name not in FORMATS:
        from difflib import get_close_matches

        near = get_close_matches(name, FORMATS, n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise _refused(f"`-o {spec}`: there is no format {name!r}.{hint}")
    if place in ("", "-"):
        return OutputFile(name, None)
    file = cwd / place
    if not file.parent.is_dir() or file.is_dir():
        raise _refused(f"`-o {spec}`: `{place}` is not a path where a file can be written.")
    return OutputFile(name, file)


def _refused(problem: str) -> MisuseError:
    return MisuseError(
        f"{problem}\nNothing was checked.\nWrite `-o FORMAT:FILE`, with one of {', '.join(FORMATS)}; `-` is stdout."
    )
