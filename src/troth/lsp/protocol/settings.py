"""What the editor's own settings say; they come before those of the project."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from troth.analysis.check.request import CheckRequest
from troth.analysis.findings import Confidence

__all__ = ["EditorSettings", "in_editor_words", "parse"]

Scope = Literal["workspace", "open"]


class EditorSettings(NamedTuple):
    """The section `troth` of the editor's settings. None means that the project decides."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    confidence: Confidence | None = None
    python: str | None = None
    diagnostics: Scope = "workspace"
    lens: bool = True
    inlay: bool = False

    def applied(self, request: CheckRequest) -> CheckRequest:
        """The request of a folder with these settings."""
        return request._replace(select=self.select, ignore=self.ignore, confidence=self.confidence, python=self.python)


def parse(section: object) -> tuple[EditorSettings, list[str]]:
    """The settings in a section as the client sends it, and what is wrong with it; a wrong value is left out."""
    if section is None:
        return EditorSettings(), []
    if not isinstance(section, Mapping):
        return EditorSettings(), [f"`troth` is {section!r}, which is not a table of settings"]
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in section.items():
        if key not in _KINDS:
            if key not in _OF_THE_CLIENT:
                problems.append(f"`troth.{key}` is not a setting of Troth; there are {', '.join(sorted(_KINDS))}")
        elif value is None:
            continue
        elif _KINDS[key] == "names" and isinstance(value, Sequence) and not isinstance(value, str):
            values[key] = tuple(map(str, value))
        elif _KINDS[key] == "names" and isinstance(value, str):
            values[key] = tuple(word.strip() for word in value.split(",") if word.strip())
        elif _fits(value, _KINDS[key]):
            values[key] = value
        else:
            problems.append(f"`troth.{key}` cannot be {value!r}")
    if values.get("select") == ():
        del values["select"]  # an empty list is how some editors write that nothing is set
    if values.get("python") == "":
        del values["python"]
    return EditorSettings(**values), problems


def in_editor_words(problem: str, request: CheckRequest) -> str:
    """What is wrong with settings, named as the editor names them and not as options of the command line."""
    options = {"--select": "select", "--ignore": "ignore", f"--python {request.python}": "python"}
    for option, setting in options.items():
        problem = problem.replace(f"`{option}`", f"`troth.{setting}`")
    return problem


def _fits(value: object, kind: str | tuple[str, ...]) -> bool:
    if isinstance(kind, tuple):
        return value in kind
    return isinstance(value, bool if kind == "switch" else str) and kind != "names"


_KINDS: dict[str, str | tuple[str, ...]] = {
    "select": "names",
    "ignore": "names",
    "confidence": ("certain", "likely"),
    "python": "text",
    "diagnostics": ("workspace", "open"),
    "lens": "switch",
    "inlay": "switch",
}
_OF_THE_CLIENT = frozenset({"path", "trace", "showReferences", "log"})  # read by an extension, and sent along by it
