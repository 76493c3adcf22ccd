"""Read the facts of one file from the bytes in which `ast_serialize` writes its syntax tree."""

import re

from troth.analysis.facts.builder import MOST_BRANCHES, NOTHING, UNTOLD
from troth.analysis.facts.from_serialized import tags
from troth.analysis.facts.from_serialized.expressions import A_NUMBER, SerialExpressions
from troth.analysis.facts.from_serialized.tree import EXCEPT, WITH, UnsupportedTreeError
from troth.analysis.facts.model import FileFacts, Node

__all__ = ["read_serialized"]

_MORE = re.compile(rb"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t\r]*[^\s#]")  # than empty lines and comments


def read_serialized(tree: bytes, source: bytes) -> FileFacts:
    """The facts of a file. Raises RefusedError where they are not sure, RecursionError where it is nested too deep."""
    try:
        return _FileReader(tree, source).file()
    except (IndexError, ValueError) as error:  # bytes of another format
        raise UnsupportedTreeError(str(error)) from error


class _FileReader(SerialExpressions):
    """Reads statements."""

    def file(self) -> FileFacts:
        count = self._integer()
        body = self._statements(count)
        if self._at != len(self._tree):
            raise UnsupportedTreeError("there is more in the tree")
        last_line = self._end_line if count else 0
        if self._source.count(b"\n") > last_line and _MORE.match(self._source, self._offset(last_line + 1, 0)):
            raise UnsupportedTreeError("there is more in the text")  # behind what is never true, or ignored altogether
        self.names.update(self._nodes)
        return self.facts(body, self._end_line if count else 1, is_async=False)

    def _statements(self, count: int) -> tuple[Node, ...]:
        result: list[Node] = []
        first = 0
        for index in range(count):
            statement = self._statement()
            if not index:
                first = self._line
            if statement is not None:
                result.append(statement)
        self._first_line = first
        return tuple(result)

    def _block(self, *, may_lack: bool = False) -> tuple[Node, ...]:
        self._expect(tags.BLOCK)
        self._expect(tags.LIST)
        count = self._short()
        self._is()
        if count == 0 and not may_lack:
            self._skip_place()
        body = self._statements(count)
        self._expect(tags.END)
        return body

    def _statement(self) -> Node | None:
        tag = self._tag()
        if tag == tags.EXPRESSION:
            value, place = self._placed()
            self._expect(tags.END)
            return self.expression(value, place)
        if tag == tags.ASSIGN:
            return self._assign()
        if tag == tags.RETURN:
            returned = self.expr() if self._is() else None
            place = self._place()
            self._expect(tags.END)
            return ("return", returned, place)
        if tag == tags.IF:
            return self._if()
        if tag == tags.DEF:
            return self._def(())
        if tag == tags.DECORATED:
            decorators = tuple(self._many())
            self._integer()
            self._integer()
            self._expect(tags.DEF)
            defined = self._def(decorators)
            self._expect(tags.END)
            return defined
        if tag == tags.IMPORT_FROM or tag == tags.IMPORT or tag == tags.IMPORT_ALL:  # noqa: PLR1714
            return self._import(tag)
        if tag == tags.ASSERT:
            test = self.expr()
            message = self.expr() if self._is() else NOTHING
            self._skip_end()
            return ("assert", test, message)
        if tag == tags.PASS:
            self._skip_end()
            return None
        if tag == tags.RAISE:
            raised = self.expr() if self._is() else None
            if self._is():
                self.expr()
            self._skip_end()
            return ("raise", raised)
        return self._compound(tag)

    def _compound(self, tag: int) -> Node:
        if tag == tags.WITH:
            return self._with()
        if tag == tags.FOR:
            return self._for()
        if tag == tags.CLASS:
            return self._classdef()
        if tag == tags.TRY:
            return self._try()
        if tag == tags.AUGMENT:
            self._skip_text()
            target = self.expr()
            value = self.expr()
            self._skip_end()
            return self.augment(target, value)
        if tag == tags.WHILE:
            test = self.expr()
            body = self._block()
            orelse = self._block(may_lack=True)
            self._skip_end()
            return ("while", test, body, orelse)
        if tag == tags.BREAK:
            self._skip_end()
            return ("break",)
        if tag == tags.CONTINUE:
            self._skip_end()
            return ("continue",)
        if tag == tags.DELETE:
            deleted = self.expr()
            self._skip_end()
            return ("del", deleted[1] if deleted[0] == "tuple" else (deleted,))
        if tag == tags.GLOBAL or tag == tags.NONLOCAL:  # noqa: PLR1714  compiled, a set is made each time
            names = [self._word() for _ in range(self._integer())]
            self._skip_end()
            return self.scope(names)
        if tag == tags.MATCH:
            return self._match()
        if tag == tags.TYPE_ALIAS:
            return self._type_alias()
        raise UnsupportedTreeError(f"a statement of the kind {tag}")

    def _assign(self) -> Node:
        targets = tuple(self._many())
        if self._tree[self._at] == tags.NO_VALUE:
            self._at += 1
            self._expect(tags.END)
            value = None
        else:
            value = self.expr()
        if self._is():
            annotation = self._annotation()
            if not self._is():
                raise UnsupportedTreeError("a type comment")
            self._skip_end()
            return self.annotate(targets[0], annotation, value)
        self._is()
        self._skip_end()
        if value is None:
            raise UnsupportedTreeError("nothing is assigned")
        return self.assign(targets, value)

    def _if(self) -> Node:
        branches: list[tuple[Node, bool | None, tuple[Node, ...]]] = [self._branch()]
        count = self._integer()
        if count >= MOST_BRANCHES - 1:
            raise UnsupportedTreeError("so many branches")
        branches += [self._branch() for _ in range(count)]
        orelse = self._block() if self._is() else ()
        self._skip_end()
        statement: Node = ()
        while branches:
            test, lives, body = branches.pop()
            if self.function and lives is not None:
                # Both sides are read, for `if False: yield` makes a generator; only one of them ever runs.
                statement = ("if", test, body, ()) if lives else ("if", test, (), orelse)
            else:
                statement = ("if", test, body, orelse)
            orelse = (statement,)
        return statement

    def _branch(self) -> tuple[Node, bool | None, tuple[Node, ...]]:
        tag = self._tree[self._at]
        lives: bool | None
        test: Node
        if tag == tags.NUMBER:
            self._at += 1
            lives = self._number() != 0
            self._skip_end()
            test = A_NUMBER
        else:
            test = self.expr()
            if test[0] == "const" and test[1] != "bool":
                if test[1] != "None":
                    raise UnsupportedTreeError("a condition that is none")
                lives = False
            else:
                lives = self.outcome(test)
        return (test, lives, self._block())

    def _for(self) -> Node:
        target = self.expr()
        callees: set[str] = set()
        iterated = self._consumed(callees)
        self.iterate(target, iterated)
        body = self._block()
        orelse = self._block(may_lack=True)
        is_async = self._is()
        self._consume(iterated, callees, "for", is_async=is_async)
        place = self._whole_place()
        self._expect(tags.END)
        return ("for", is_async, target, iterated, body, orelse, place)

    def _consumed(self, callees: set[str]) -> Node:
        """What a `for` or `with` takes; a callee goes to `callees` until the color of the statement is known."""
        if self._tree[self._at] != tags.CALL:
            return self.expr()
        self._at += 1
        return self._call(callees)

    def _consume(self, value: Node, callees: set[str], how: str, *, is_async: bool) -> None:
        if is_async:
            self.waits = True
            self.awaited.update([f"{how} {callee}" for callee in callees])
            if value[0] != "call":
                self.take_async(value, how)
        else:
            self.calls |= callees
            self.take(value)

    def _with(self) -> Node:
        count = self._integer()
        items: list[Node] = []
        is_async = False
        for index in range(count):
            callees: set[str] = set()
            value = self._consumed(callees)
            if not index:
                is_async = self._opening(WITH, self._line)[0] == b"async"
            self._consume(value, callees, "with", is_async=is_async)
            target = self.expr() if self._is() else None
            if target is not None:
                self.enter(target, value, is_async=is_async)
            items.append((value, target))
        body = self._block()
        if self._is() != is_async:
            raise UnsupportedTreeError("a `with` of the other color")
        place = self._whole_place()
        self._expect(tags.END)
        return ("with", is_async, tuple(items), body, place)

    def _try(self) -> Node:
        body = self._block()
        count = self._integer()
        types: list[Node | None] = []
        lines: list[int] = []
        for _ in range(count):
            if self._is():
                types.append(self.expr())
                lines.append(self._opening(EXCEPT, self._line)[1])
            else:
                types.append(None)
                lines.append(0)
        names: list[str | None] = []
        for _ in range(count):
            name = None
            if self._is():
                name = self._word()
                self.origins[name] = UNTOLD
                self._skip_place()
            names.append(name)
        handlers: list[Node] = []
        for index in range(count):
            inside = self._block()
            line = lines[index] or self._opening(EXCEPT, self._first_line)[1]
            handlers.append((types[index], names[index], inside, line))
        orelse = self._block() if self._is() else ()
        final = self._block() if self._is() else ()
        self._is()
        self._skip_end()
        return ("try", body, tuple(handlers), orelse, final)

    def _import(self, tag: int) -> Node:
        module = ""
        level = 0
        names: list[tuple[str, str | None]] = []
        if tag == tags.IMPORT_ALL:
            module = self._word()
            level = self._integer()
            names.append(("*", None))
        else:
            if tag == tags.IMPORT_FROM:
                level = self._integer()
                module = self._word()
            for _ in range(self._integer()):
                name = self._word()
                names.append((name, self._word() if self._is() else None))
        self._skip_place()
        self._integer()
        self._expect(tags.END)
        if tag == tags.IMPORT:
            return self.import_modules(names)
        return self.import_names(tuple([(alias or name, module, name, level) for name, alias in names]))

    def _def(self, decorators: tuple[Node, ...]) -> Node:
        name = self._word()
        params = self._params()
        reading = self.begin_function(name, decorators, params)
        body = self._block()
        self.leave_function(reading, body, is_async=self._is())
        if self._is():
            self._skip_type_params()
        returns = self._annotation() if self._is() else None
        place = self._whole_place()
        self._expect(tags.END)
        return self.keep_function(reading, place, returns)

    def _classdef(self) -> Node:
        reading = self.begin_class(self._word())
        body = self._block()
        self.leave_class(reading)
        bases = tuple(self._many())
        decorators = tuple(self._many())
        if self._is():
            self._skip_type_params()
        self._expect(tags.DICT)
        for _ in range(self._short()):
            self._word()
            self.expr()
        place = self._whole_place()
        self._expect(tags.END)
        return self.keep_class(reading, place, bases, decorators, body)

    def _type_alias(self) -> Node:
        self._expect(tags.NAME)
        name: Node = ("name", self._word())
        self._skip_end()
        self._skip_type_params()
        value = self.expr()
        self._skip_end()
        self.note_assignment(name, None, value)
        return ("assign", (name,), value)

    def _match(self) -> Node:
        subject = self.expr()
        cases: list[Node] = []
        for _ in range(self._integer()):
            captures: list[str] = []
            is_named = self._tree[self._at] == tags.AS_PATTERN and self._tree[self._at + 1] == tags.TRUE
            matched = self._pattern(captures)
            for captured in captures:
                self.origins[captured] = UNTOLD
            guard = self.expr() if self._is() else None
            body = self._block()
            cases.append((matched, " ".join(captures), captures[-1] if is_named else None, guard, body))
        self._skip_end()
        return ("match", subject, tuple(cases))

    def _pattern(self, captures: list[str]) -> Node | None:
        """The class that a pattern asks for, if it is one; the names it binds are added to `captures`."""
        tag = self._tag()
        matched: Node | None = None
        if tag == tags.AS_PATTERN or tag == tags.STAR_PATTERN:  # noqa: PLR1714  compiled, a set is made each time
            if tag == tags.AS_PATTERN and self._is():
                matched = self._pattern(captures)
            self._capture(captures)
        elif tag == tags.OR_PATTERN or tag == tags.SEQUENCE_PATTERN:  # noqa: PLR1714
            for _ in range(self._integer()):
                self._pattern(captures)
        elif tag == tags.VALUE_PATTERN:
            self.expr()
        elif tag == tags.SINGLETON_PATTERN:
            self._tag()
        elif tag == tags.MAPPING_PATTERN:
            for _ in range(self._integer()):
                self.expr()
                self._pattern(captures)
            self._capture(captures)
        elif tag == tags.CLASS_PATTERN:
            matched = self.expr()
            for _ in range(self._integer()):
                self._pattern(captures)
            for _ in range(self._integer()):
                self._word()
                self._pattern(captures)
        else:
            raise UnsupportedTreeError(f"a pattern of the kind {tag}")
        self._skip_end()
        return matched

    def _capture(self, captures: list[str]) -> None:
        if self._is():
            captures.append(self._word())
            self._skip_place()
