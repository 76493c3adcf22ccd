"""Turn the expressions of a serialized tree into the tuples that facts consist of."""

import ast
import re
import sys

from troth.analysis.facts.builder import LONGEST_ROW, LONGEST_STRING, UNTOLD, written
from troth.analysis.facts.from_serialized import tags
from troth.analysis.facts.from_serialized.annotations import STANDING, AnnotationReader
from troth.analysis.facts.from_serialized.tree import STRANGE, UnsupportedTreeError, is_python, words
from troth.analysis.facts.model import At, Node, Param

__all__ = ["A_NUMBER", "SerialExpressions"]

A_NUMBER: Node = ("const", "int")
_A_TEXT: Node = ("const", "str")
_SOME_BYTES: Node = ("const", "bytes")
_A_REAL: Node = ("const", "float")
_A_COMPLEX: Node = ("const", "complex")
_DOTS: Node = ("const", "ellipsis")
_NOWHERE: At = (0, 0, 0, 0)
_OPS = ("==", "!=", "<", "<", "<", "<", "is", "is not", "in", "not in")
_A_LITERAL = re.compile(rb"[ \t]*[A-Za-z]{0,2}([\"'])(?!\1).*\1[ \t\r]*")  # or several, in a line of their own
_ANY_QUOTES = sys.version_info >= (3, 12)  # inside f-strings


class SerialExpressions(AnnotationReader):
    """Reads expressions; those that are most frequent are asked for first."""

    def expr(self) -> Node:
        """The tuple for any expression."""
        tag = self._tree[self._at]
        if tag == tags.NAME:
            self._at += 1
            return self._name()
        if tag == tags.CALL:
            self._at += 1
            return self._call(self.calls)
        if tag == tags.MEMBER:
            self._at += 1
            base = self._within()
            name = self._word()
            self.attributes.add(name)
            place = self._place()
            self._expect(tags.END)
            return ("attr", base, name, place)
        if tag == tags.TEXT:
            self._at += 1
            return self._string()
        return self._other(tag)

    def _placed(self) -> tuple[Node, At]:
        """An expression, and where it stands if it is a name; other places are not told."""
        if self._tree[self._at] != tags.NAME:
            return self.expr(), _NOWHERE
        start = self._at + 1
        self._at = start
        self._word()
        place = self._place()
        self._at = start
        return self._name(), place

    def _within(self) -> Node:
        """The same for one that stands in another without a bracket: only these rows have no end in Python."""
        if self._tree[self._at] == tags.NAME:
            self._at += 1
            return self._name()
        if self.row >= LONGEST_ROW:
            raise RecursionError
        self.row += 1
        expression = self.expr()
        self.row -= 1
        return expression

    def _name(self) -> Node:
        name = self._word()
        self._skip_end()
        node = self._nodes.get(name)
        if node is not None:
            return node
        constant = STANDING.get(name)
        if constant is not None:
            return constant
        node = self._nodes[name] = ("name", name)
        return node

    def _string(self) -> Node:
        self._texts += 1
        self._expect(tags.STR)
        size = self._short()
        at = self._at
        self._at = end = at + size
        has_surrogates = self._is()
        if size > 4 * LONGEST_STRING:
            self._skip_end()
            return _A_TEXT
        data = self._tree[at:end]
        if has_surrogates or STRANGE in data:
            place = self._place()
            self._expect(tags.END)
            text = str(ast.literal_eval(f"({self._text(place).decode()}\n)"))
        else:
            self._skip_end()
            text = words.get(data) or data.decode()  # one object with the name of the same letters
        return ("const", "str", text) if len(text) <= LONGEST_STRING else _A_TEXT

    def _many(self) -> list[Node]:
        self._expect(tags.LIST)
        count = self._short()
        return [self.expr() for _ in range(count)]

    def _call(self, callees: set[str]) -> Node:
        """A call; its callee as written is added to `callees`, and is not mentioned as a value."""
        tag = self._tree[self._at]
        callee: Node
        if tag == tags.NAME:
            self._at += 1
            name = self._word()
            end = self._at
            self._skip_end()
            callees.add(name)
            callee = ("name", name)
        elif tag == tags.MEMBER:
            self._at += 1
            base = self._within()
            name = self._word()
            end = self._at
            place = self._place()
            self._expect(tags.END)
            callee = ("attr", base, name, place)
            callees.add(f"{base[1]}.{name}" if base[0] == "name" else written(callee))
        else:
            callee = self._within()
            end = 0
            text = written(callee)
            if text:
                callees.add(text)
        values = self._many()
        self._expect(tags.INTS)
        count = self._short()
        kinds: list[int] = []
        plain = True
        for _ in range(count):
            kind = self._short()
            kinds.append(kind)
            plain = plain and kind == tags.POSITIONAL
        self._expect(tags.LIST)
        count = self._short()
        if count != len(values) or len(kinds) != count:
            raise UnsupportedTreeError("arguments without kinds")
        args: tuple[Node, ...] = ()
        keywords: tuple[tuple[str | None, Node], ...] = ()
        if plain:
            for _ in range(count):
                self._expect(tags.NONE)
            args = tuple(values)
        else:
            positional: list[Node] = []
            by_name: list[tuple[str | None, Node]] = []
            for index in range(count):
                tag = self._tag()
                kind = kinds[index]
                value = values[index]
                if kind == tags.POSITIONAL:
                    positional.append(value)
                elif kind == tags.NAMED and tag == tags.STR:
                    by_name.append((self._bare_word(), value))
                elif kind == tags.ALL_POSITIONAL:
                    positional.append(("star", value))
                elif kind == tags.ALL_NAMED:
                    by_name.append((None, value))
                else:
                    raise UnsupportedTreeError("an argument of another kind")
                if kind != tags.NAMED and tag != tags.NONE:
                    raise UnsupportedTreeError("an argument with a name")
            args, keywords = tuple(positional), tuple(by_name)
        call_place = self._place()
        self._expect(tags.END)
        if count == 1 and args and args[0][0] == "comp" and args[0][1] == "generator":
            args = (self._bare_generator(args[0], end, call_place),)
        return ("call", callee, args, keywords, call_place)

    def _bare_generator(self, node: Node, callee_end: int, call: At) -> Node:
        """The only argument, whose brackets are those of the call: `ast` counts them as its own."""
        place = node[4]
        text = self._text(place)
        if text.startswith(b"(") and text.endswith(b")") and is_python(text):  # and not `(a) for a in (b)`
            return node
        if not callee_end:
            raise UnsupportedTreeError("a generator for a callee without a name")
        after, self._at = self._at, callee_end
        callee = self._place()
        self._at = after
        opening = self._offset(callee[2], callee[3])
        if self._source[opening : opening + 1] != b"(":
            raise UnsupportedTreeError("brackets somewhere else")
        return (*node[:4], (callee[2], callee[3], call[2], call[3]))

    def _other(self, tag: int) -> Node:
        """The tuple for an expression that is none of the most frequent."""
        self._at += 1
        if tag == tags.AWAIT:
            return self._awaiting()
        if tag == tags.INDEX:
            return self._subscript()
        if tag == tags.NUMBER:
            self._number()
            self._skip_end()
            return A_NUMBER
        if tag == tags.ITEMS:
            return self._several("list")
        if tag == tags.TUPLE:
            return self._several("tuple")
        if tag == tags.SET:
            return self._several("set")
        if tag == tags.MAPPING:
            return self._mapping()
        if tag == tags.COMPARE:
            return self._compare()
        if tag == tags.BOOLEAN:
            is_or = self._integer() == 1
            values = tuple(self._many())
            self._skip_end()
            return ("or" if is_or else "and", values)
        if tag == tags.UNARY:
            operator = self._integer()
            operand = self._within()
            self._skip_end()
            return ("not", operand) if operator == tags.NOT else ("parts", (operand,))
        if tag == tags.OPERATION:
            operator = self._integer()
            lhs = self._within()
            rhs = self._within()
            self._expect(tags.END)
            return ("binop", lhs, rhs, operator == tags.OR_BITS)
        if tag == tags.FORMATTED:
            return self._formatted()
        if tag == tags.CONDITIONAL:
            if self.flavors:  # one of the two sides may not be there at all
                raise UnsupportedTreeError("a choice of flavors")
            body = self.expr()
            test = self.expr()
            orelse = self._within()
            self._skip_end()
            return ("ifexp", test, body, orelse)
        return self._rare(tag)

    def _rare(self, tag: int) -> Node:
        """The tuple for an expression that hardly any function has."""
        if tag == tags.LAMBDA:
            return self._lambda()
        if tag == tags.GENERATOR:
            return self._comprehension("generator")
        if tag == tags.LIST_COMP:
            return self._comprehension("list")
        if tag == tags.SET_COMP:
            return self._comprehension("set")
        if tag == tags.DICT_COMP:
            return self._comprehension("dict")
        if tag == tags.STAR:
            value = self.expr()
            self._skip_end()
            return ("star", value)
        if tag == tags.SLICE:
            parts = tuple([self.expr() for _ in range(3) if self._is()])
            self._skip_end()
            return ("slice", parts)
        if tag == tags.WALRUS:
            return self._walrus()
        if tag == tags.YIELD:
            self.generator = True
            yielded = self.expr() if self._is() else None
            self._skip_end()
            return ("yield", yielded)
        if tag == tags.YIELD_FROM:
            self.generator = True
            value = self.expr()
            self._skip_end()
            return ("yieldfrom", value)
        return self._constant(tag)

    def _constant(self, tag: int) -> Node:
        if tag == tags.BYTES:
            self._texts += 1
            self._skip_text()
            self._skip_end()
            return _SOME_BYTES
        if tag == tags.REAL:
            self._skip_real()
            self._skip_end()
            return _A_REAL
        if tag == tags.ELLIPSIS:
            self._skip_end()
            return _DOTS
        if tag == tags.BIG_NUMBER:
            self._skip_text()
            self._skip_end()
            return A_NUMBER
        if tag == tags.COMPLEX:
            self._skip_real()
            self._skip_real()
            self._skip_end()
            return _A_COMPLEX
        raise UnsupportedTreeError(f"an expression of the kind {tag}")

    def _skip_real(self) -> None:
        self._expect(tags.FLOAT)
        self._at += 8

    def _awaiting(self) -> Node:
        self.waits = True
        if self._tree[self._at] == tags.CALL:
            self._at += 1
            value = self._call(self.awaited)
        else:
            value = self.expr()
            self.wait_for(value)
        place = self._place()
        self._expect(tags.END)
        return ("await", value, place)

    def _subscript(self) -> Node:
        base = self._within()
        tag = self._tree[self._at]
        index: Node
        if tag == tags.NUMBER:
            self._at += 1
            number = self._number()
            self._skip_end()
            index = ("const", "int", number)  # of a tuple
        elif tag == tags.BIG_NUMBER:
            raise UnsupportedTreeError("an index of that size")
        else:
            index = self.expr()
            if tag == tags.TEXT:
                self.key(base)
        self._skip_end()
        return ("index", base, index)

    def _several(self, kind: str) -> Node:
        items = tuple(self._many())
        self._skip_end()
        return (kind, items)

    def _mapping(self) -> Node:
        self._expect(tags.LIST)
        count = self._short()
        keys = tuple([self.expr() if self._is() else None for _ in range(count)])
        values = tuple(self._many())
        self._skip_end()
        return ("dict", keys, values)

    def _compare(self) -> Node:
        lhs = self.expr()
        self._expect(tags.INTS)
        count = self._short()
        ops = tuple([_OPS[self._short()] for _ in range(count)])
        operands = tuple(self._many())
        self._skip_end()
        return ("compare", lhs, ops, operands)

    def _formatted(self) -> Node:
        values: list[Node] = []
        texts = self._texts
        for _ in range(self._integer()):
            if self._is():
                for _ in range(self._integer()):
                    self._part(values)
            else:
                self._skip_text()
                self._skip_place()
        self._is()
        place = self._place()
        self._expect(tags.END)
        if not _ANY_QUOTES and (self._texts != texts or place[0] != place[2]):
            self._check_quotes(self._text(place), has_texts=self._texts != texts)
        self._texts = texts + 1
        return ("fstr", tuple(values))

    def _check_quotes(self, text: bytes, *, has_texts: bool) -> None:
        """Refuse an f-string with something in its brackets that only newer versions of Python know."""
        if has_texts:
            is_simple = text.count(text[-1:]) == 2 and b"\n" not in text and b"\\" not in text and b"#" not in text
        else:
            is_simple = all(map(_A_LITERAL.fullmatch, text.split(b"\n")))
        if not is_simple and not is_python(b"(" + text + b"\n)"):
            raise UnsupportedTreeError("an f-string of a newer kind")

    def _part(self, values: list[Node]) -> None:
        tag = self._tag()
        if tag == tags.STR:
            size = self._short()
            self._at += size
            self._skip_place()
            return
        if tag != tags.INTERPOLATION:
            raise UnsupportedTreeError("a part of an f-string that is none")
        values.append(self.expr())
        if self._is():
            self._skip_text()
        if self._is():
            for _ in range(self._integer()):
                self._part(values)
            self._skip_place()
        self._expect(tags.END)

    def _walrus(self) -> Node:
        self._expect(tags.NAME)
        name = self._word()
        self._skip_end()
        self.origins[name] = UNTOLD
        value = self.expr()
        self._skip_end()
        return ("walrus", name, value)

    def _lambda(self) -> Node:
        self.attributes.add("lambda")  # stands for a function, as the name of one would
        params = self._params()
        for param in params:
            self.origins[param[0]] = UNTOLD
        self._expect(tags.BLOCK)
        self._expect(tags.LIST)
        if self._short() != 1:
            raise UnsupportedTreeError("a lambda of several statements")
        self._is()
        self._expect(tags.RETURN)
        self._expect(tags.TRUE)
        body = self._within()
        self._skip_end()
        self._expect(tags.END)
        place = self._place()
        self._expect(tags.END)
        return ("lambda", params, body, place)

    def _comprehension(self, kind: str) -> Node:
        parts: tuple[Node, ...]
        if kind == "dict":
            if not self._is():
                raise UnsupportedTreeError("an item of a newer kind")
            key = self.expr()
            parts = (key, self.expr())
        else:
            waits, self.waits = self.waits, False
            parts = (self.expr(),)
            self.waits = self.end_item(kind, waits=waits)
            if parts[0][0] == "star":
                raise UnsupportedTreeError("an item of a newer kind")
        count = self._integer()
        targets = [self.expr() for _ in range(count)]
        iterated = [self.expr() for _ in range(count)]
        conditions = [tuple(self._many()) for _ in range(count)]
        generators: list[Node] = []
        for index in range(count):
            is_async = self._is()
            generators.append((is_async, targets[index], iterated[index], conditions[index]))
            self.bind(targets[index])
            if is_async:
                self.waits = True
                self.take_async(iterated[index], "for")
            else:
                self.take(iterated[index])
        place = self._place()
        self._expect(tags.END)
        return ("comp", kind, parts, tuple(generators), place)

    def _params(self) -> tuple[Param, ...]:
        self._expect(tags.LIST)
        count = self._short()
        result: list[Param] = []
        is_doubtful = False
        start = end = 0
        for _ in range(count):
            name = self._word()
            kind = self._integer()
            annotation = self._annotation() if self._is() else None
            default = self.expr() if self._is() else None
            only_positional = self._is()
            if only_positional:
                place = self._place()
                start = start or self._offset(place[0], place[1])
                end = self._offset(place[2], place[3])
                is_doubtful = is_doubtful or name.startswith("__")
            else:
                self._skip_place()
            if kind == tags.POSITIONAL or kind == tags.OPTIONAL:  # noqa: PLR1714  compiled, a set is made each time
                how = "/" if only_positional else ""
            elif kind == tags.ALL_POSITIONAL:
                how = "*"
            elif kind == tags.ALL_NAMED:
                how = "**"
            else:
                how = "="
            result.append((name, annotation, default, how))
        if is_doubtful:  # by an old custom, of which `ast` knows nothing, `__name` and all before it are such
            if b"/" in self._source[start : self._source.find(b")", end)]:
                raise UnsupportedTreeError("a slash, or none")
            result = [(name, note, default, "" if how == "/" else how) for name, note, default, how in result]
        return tuple(result)
