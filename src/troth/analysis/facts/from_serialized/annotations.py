"""What an annotation says: a serialized tree has a type in its place, with less in it than was written."""

import ast
import sys

from troth.analysis.facts.builder import FALSE, NOTHING, TRUE
from troth.analysis.facts.from_ast.expressions import ExpressionReader
from troth.analysis.facts.from_serialized import tags
from troth.analysis.facts.from_serialized.tree import TreeReader, UnsupportedTreeError
from troth.analysis.facts.model import At, Node

__all__ = ["STANDING", "AnnotationReader"]

STANDING: dict[str, Node] = {"None": NOTHING, "True": TRUE, "False": FALSE}  # names that are none
_MOST = 20_000  # annotations that are remembered


class _Annotation:
    """What an annotation says, wherever it stands."""

    def __init__(self, node: Node, reader: ExpressionReader) -> None:
        self.node = node
        self.reader = reader
        self.has_places = moved(node, 1, 0) != node
        self.names = tuple(reader.names)
        self.is_plain = not (reader.attributes or reader.calls or reader.keyed or reader.taken or reader.origins)


_annotations: dict[bytes, _Annotation] = {}


def moved(node: Node, lines: int, columns: int) -> Node:
    """An expression so many lines further down; those of its places that are in the first line so much to the right."""
    if len(node) == 4 and type(node[0]) is int:
        line, column, end_line, end_column = node
        return (
            line + lines,
            column + columns if line == 1 else column,
            end_line + lines,
            end_column + columns if end_line == 1 else end_column,
        )
    return tuple([moved(part, lines, columns) if isinstance(part, tuple) else part for part in node])


class AnnotationReader(TreeReader):
    """Reads annotations by their text, which for most of them was read before."""

    def _annotation(self) -> Node:
        start = self._at
        if self._tag() == tags.UNBOUND_TYPE:
            name = self._word()
            self._expect(tags.LIST)
            if self._short() == 0 and not self._is() and self._tag() == tags.NONE and self._tag() == tags.NONE:
                place = self._place()
                self._expect(tags.END)
                node = self._nodes.get(name)
                if node is not None:
                    return node
                if "." not in name:
                    return STANDING.get(name) or self._named(name)
                return self._written_out(place)
        self._at = start
        return self._written_out(self._skip_type())

    def _written_out(self, place: At) -> Node:
        """What stands there, by the text of it: the same few hundred annotations stand all over a project."""
        text = self._text(place)
        annotation = _annotations.get(text)
        if annotation is None:
            try:
                tree = ast.parse(b"(" + text + b"\n)", mode="eval")
            except (SyntaxError, ValueError) as error:
                raise UnsupportedTreeError("an annotation that is none") from error
            reader = ExpressionReader()
            if len(_annotations) >= _MOST:
                _annotations.clear()
            node = reader.expr(tree.body)
            if reader.waits or reader.generator:
                raise UnsupportedTreeError("an annotation that does something")
            annotation = _annotations[text] = _Annotation(node, reader)
        for name in annotation.names:
            self._named(name)
        if not annotation.is_plain:
            reader = annotation.reader
            self.attributes |= reader.attributes
            self.calls |= reader.calls
            self.keyed |= reader.keyed
            self.taken |= reader.taken
            self.origins.update(reader.origins)
        return moved(annotation.node, place[0] - 1, place[1] - 1) if annotation.has_places else annotation.node

    def _skip_types(self) -> None:
        self._expect(tags.LIST)
        for _ in range(self._short()):
            self._skip_type()

    def _skip_maybe(self) -> None:
        """A string, or none."""
        tag = self._tag()
        if tag == tags.STR:
            size = self._short()
            self._at += size
        elif tag != tags.NONE:
            raise UnsupportedTreeError("no string")

    def _skip_type(self) -> At:
        """The place of a type."""
        tag = self._tag()
        if tag == tags.UNBOUND_TYPE:
            self._skip_text()
            self._skip_types()
            self._is()
            self._skip_maybe()
            self._skip_maybe()
        elif tag == tags.UNION_TYPE:
            self._skip_types()
            self._is()
            self._skip_maybe()
            self._skip_maybe()
            self._is()
        elif tag == tags.LIST_TYPE:
            self._skip_types()
        elif tag == tags.TUPLE_TYPE:
            self._skip_types()
            self._is()
        elif tag == tags.UNPACKED_TYPE:
            self._skip_type()
            self._is()
        elif tag == tags.RAW_TYPE:
            self._skip_raw()
        elif tag == tags.DICT_TYPE:
            self._expect(tags.LIST)
            for _ in range(self._short()):
                self._skip_maybe()
            self._skip_types()
        elif tag == tags.CALL_TYPE:
            self._skip_type()
            self._skip_types()
            self._expect(tags.LIST)
            for _ in range(self._short()):
                self._skip_maybe()
                self._skip_type()
        elif tag != tags.ELLIPSIS_TYPE:
            raise UnsupportedTreeError(f"a type of the kind {tag}")
        place = self._place()
        self._expect(tags.END)
        return place

    def _skip_raw(self) -> None:
        kind = self._word()
        if kind == "builtins.bool":
            self._is()
        elif kind == "builtins.int":
            self._number()
        elif kind == "builtins.str" or kind == "builtins.bytes":  # noqa: PLR1714  compiled, a set is made each time
            self._skip_text()
        else:
            self._expect(tags.NONE)
            self._skip_maybe()

    def _skip_type_params(self) -> None:
        if sys.version_info < (3, 12):
            raise UnsupportedTreeError("type parameters")
        for _ in range(self._short()):
            self._integer()
            self._skip_text()
            if self._is():
                self._skip_type()
            self._skip_types()
            if self._is():
                self._skip_type()
