"""Read YAML 1.2 (the core schema) into nodes with their places.

PyYAML speaks YAML 1.1, in which the key `on` and the country `NO` are booleans and `1:30` is ninety. Its parser is
used for the structure alone; what a plain word means is decided here.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING

from troth.errors import MisuseError
from troth.runtime.workflows.document.nodes import ListNode, MapNode, MappingEntry, Node, ScalarNode, SourceMark
from troth.runtime.workflows.document.problems import DocumentProblem, InvalidWorkflowError, Problems

if TYPE_CHECKING:
    import yaml

__all__ = ["YamlMissingError", "read_yaml"]

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"(?P<true>true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp", "merge", "value")
) | {"!"}  # what PyYAML itself says of words without a tag
_MOST = 500_000
_DEEPEST = 100  # nobody nests so far by hand; a document that does would end in Python's own recursion limit


class YamlMissingError(MisuseError):
    """The YAML library comes with the `runtime` extra."""


def read_yaml(text: str, file: str) -> Node:
    """The document in `text` as nodes; `file` is the name its places carry."""
    try:
        import yaml
    except ImportError as missing:
        raise YamlMissingError(
            "Reading a workflow from YAML needs PyYAML, which is not installed.\nNothing was started.\n"
            "Install it with `pip install 'troth[runtime]'`."
        ) from missing
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as broken:
        at = broken.problem_mark or broken.context_mark
        mark = SourceMark(file, at.line + 1, at.column + 1) if at else SourceMark(file)
        raise InvalidWorkflowError([_not_yaml(text, mark, str(broken.problem or broken))]) from broken
    except yaml.reader.ReaderError as broken:
        before = text[: broken.position]
        mark = SourceMark(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        message = f"this is not YAML: the character {broken.character!r} is not allowed"
        raise InvalidWorkflowError([DocumentProblem(mark, message)]) from broken
    except yaml.YAMLError as broken:
        raise InvalidWorkflowError([DocumentProblem(SourceMark(file), f"this is not YAML: {broken}")]) from broken
    if root is None:
        raise InvalidWorkflowError(
            [DocumentProblem(SourceMark(file), "the file is empty", "`troth init` writes one that runs.")]
        )
    problems = Problems()
    node = _convert(root, file, problems, 0, Counter())
    problems.raise_any()
    return node


def _not_yaml(text: str, mark: SourceMark, says: str) -> DocumentProblem:
    lines = text.splitlines()
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    if "\t" in line[: mark.column]:
        return DocumentProblem(mark, "this is not YAML: a tab cannot indent", "Write spaces.")
    if "another document" in says:
        return DocumentProblem(mark, "a second document begins here; a file contains one workflow")
    return DocumentProblem(mark, f"this is not YAML: {says}")


def _convert(node: "yaml.Node", file: str, problems: Problems, depth: int, met: "Counter[int]") -> Node:
    mark = SourceMark(file, node.start_mark.line + 1, node.start_mark.column + 1)
    if depth > _DEEPEST:  # also what an alias that contains itself comes to
        raise InvalidWorkflowError(
            [DocumentProblem(mark, f"nested more than {_DEEPEST} deep, or an alias that contains itself")]
        )
    met[0] += 1
    if met[0] > _MOST:  # a handful of aliases that hold each other comes to more than any memory
        raise InvalidWorkflowError(
            [DocumentProblem(mark, f"more than {_MOST:,} values, the copies that aliases make included")]
        )
    if node.tag not in _PLAIN_TAGS:
        problems.add(
            mark, f"the tag `{node.tag}` is not supported here", "Write plain strings, numbers, lists and maps."
        )
    if node.id == "scalar":  # type: ignore[attr-defined]  # each class of nodes has one; the stubs leave it out
        return _scalar(node, mark)
    if node.id == "sequence":  # type: ignore[attr-defined]
        return ListNode(tuple(_convert(item, file, problems, depth + 1, met) for item in node.value), mark)
    return _mapping(node, mark, file, problems, depth, met)


def _mapping(
    node: "yaml.Node", mark: SourceMark, file: str, problems: Problems, depth: int, met: "Counter[int]"
) -> MapNode:
    entries: list[MappingEntry] = []
    for key, value in node.value:
        at = SourceMark(file, key.start_mark.line + 1, key.start_mark.column + 1)
        if key.id != "scalar":
            problems.add(at, "a key has to be a string")
            continue
        if (first := next((entry for entry in entries if entry.key == key.value), None)) is not None:
            problems.add(at, f"the key `{key.value}` is used twice; the first is on line {first.mark.line}")
            continue
        if key.value == "<<":
            problems.add(at, "merging with `<<` is not part of YAML 1.2", "Write the keys out.")
            continue
        entries.append(MappingEntry(key.value, _convert(value, file, problems, depth + 1, met), at))
    return MapNode(tuple(entries), mark)


def _scalar(node: "yaml.Node", mark: SourceMark) -> ScalarNode:
    text: str = node.value
    style = getattr(node, "style", None)
    if style:  # plain is "" for the C loader and None for the Python one
        return ScalarNode(text, mark, quoted=style in ("'", '"'))
    return ScalarNode(_meaning(text), mark)


def _meaning(text: str) -> str | int | float | bool | None:
    """What a plain word is in the core schema of YAML 1.2; `.inf` and `.nan`, which JSON cannot hold, stay texts."""
    if _NULL.fullmatch(text):
        return None
    if word := _BOOL.fullmatch(text):
        return word["true"] is not None
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
