"""Turn the expressions of a syntax tree into the tuples that facts consist of."""

import ast
from collections.abc import Callable
from typing import Any

from troth.analysis.facts.builder import FALSE, LONGEST_ROW, LONGEST_STRING, TRUE, UNTOLD, Reading, written
from troth.analysis.facts.model import At, Node, Param

__all__ = ["CONSTANTS", "READ", "ExpressionReader", "at"]

CONSTANTS: dict[object, Node] = {  # by their type, but for those of which there are two
    True: TRUE,
    False: FALSE,
    str: ("const", "str"),
    bytes: ("const", "bytes"),
    int: ("const", "int"),
    float: ("const", "float"),
    complex: ("const", "complex"),
    type(None): ("const", "None"),
    type(...): ("const", "ellipsis"),
}
_OPS: dict[type, str] = {
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def at(node: Any) -> At:
    """Where `node` stands."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


# Read once: looking into the module `ast` for each node of a project takes time of its own.
_Name = ast.Name
_Attribute = ast.Attribute
_Call = ast.Call
_Constant = ast.Constant
_FormattedValue = ast.FormattedValue


def _no_key(_reader: "ExpressionReader", _node: None) -> None:
    """The key of `**others` in a dict."""


class ExpressionReader(Reading):
    """Reads the expressions of an `ast`; collects on the way which callees are awaited on the spot and which are not.

    This runs over every expression of a project, and twice the time of `ast.parse` is all there is for everything. So
    names and constants, which are most of all nodes, are read where they are met; the others cost one look-up and one
    call. Comprehensions are written as loops: before 3.12 each is a function of its own.
    """

    def expr(self, node: Any) -> Node:
        """The tuple for any expression."""
        kind = type(node)
        return self.names[node.id] if kind is _Name else READ[kind](self, node)

    def _within(self, node: Any) -> Node:
        """The same for one that stands in another without a bracket: only these rows have no end in Python."""
        kind = type(node)
        if kind is _Name:
            return self.names[node.id]
        if kind is _Constant:
            return self._constant(node)
        if self.row >= LONGEST_ROW:
            raise RecursionError
        self.row += 1
        expression: Node = READ[kind](self, node)
        self.row -= 1
        return expression

    def _name(self, node: Any) -> Node:
        return self.names[node.id]

    def _attribute(self, node: Any) -> Node:
        base, name = node.value, node.attr
        kind = type(base)
        self.attributes.add(name)
        return (
            "attr",
            self.names[base.id] if kind is _Name else self._within(base),
            name,
            (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset),
        )

    def called(self, node: Any, callees: set[str] | None = None) -> Node:
        """The tuple for a call; its callee as written is added to `callees`, and is not mentioned as a value."""
        names = self.names
        if callees is None:
            callees = self.calls
        func, args, keyword_args = node.func, node.args, node.keywords
        kind = type(func)
        callee: Node
        if kind is _Name:
            name = func.id
            callees.add(name)
            callee = ("name", name)
        elif kind is _Attribute:
            base, name = func.value, func.attr
            kind = type(base)
            if kind is _Name:
                inner = names[base.id]
                callees.add(f"{inner[1]}.{name}")
            else:
                inner = self._within(base)
            callee = ("attr", inner, name, (func.lineno, func.col_offset, func.end_lineno, func.end_col_offset))
            if kind is not _Name:
                callees.add(written(callee))
        else:
            callee = self._within(func)
            if text := written(callee):
                callees.add(text)
        if keyword_args:
            keywords: list[tuple[str | None, Node]] = []
            for keyword in keyword_args:
                value = keyword.value
                kind = type(value)
                if kind is _Name:
                    keywords.append((keyword.arg, names[value.id]))
                elif kind is _Constant:
                    value = value.value
                    kind = type(value)
                    is_told = kind is str and len(value) <= LONGEST_STRING
                    keywords.append(
                        (
                            keyword.arg,
                            ("const", "str", value) if is_told else CONSTANTS[value if kind is bool else kind],
                        )
                    )
                else:
                    keywords.append((keyword.arg, READ[kind](self, value)))
            keyword_args = tuple(keywords)
        else:
            keyword_args = ()
        if args:
            arg = args[0]
            kind = type(arg)
            first = names[arg.id] if kind is _Name else READ[kind](self, arg)
            args = (first,) if len(args) == 1 else (first, *self._many(args[1:]))
        else:
            args = ()
        return (
            "call",
            callee,
            args,
            keyword_args,
            (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset),
        )

    def _await(self, node: Any) -> Node:
        self.waits = True
        value = node.value
        if type(value) is _Call:
            place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            return ("await", self.called(value, self.awaited), place)
        awaited = self.expr(value)
        self.wait_for(awaited)
        return ("await", awaited, at(node))

    def _constant(self, node: Any) -> Node:
        value = node.value
        if type(value) is str and len(value) <= LONGEST_STRING:
            return ("const", "str", value)
        kind = type(value)
        return CONSTANTS[value if kind is bool else kind]

    def _subscript(self, node: Any) -> Node:
        base, index = node.value, node.slice
        if type(index) is not _Constant:
            return ("index", self._within(base), self.expr(index))
        value, container = index.value, self._within(base)
        if type(value) is int:
            return ("index", container, ("const", "int", value))  # of a tuple
        if type(value) is str:
            self.key(container)
        return ("index", container, self._constant(index))

    def _many(self, nodes: list[Any]) -> tuple[Node, ...]:
        names = self.names
        result: list[Node] = []
        for node in nodes:
            kind = type(node)
            if kind is _Name:
                result.append(names[node.id])
            elif kind is _Constant:
                value = node.value
                kind = type(value)
                is_told = kind is str and len(value) <= LONGEST_STRING
                result.append(("const", "str", value) if is_told else CONSTANTS[value if kind is bool else kind])
            else:
                result.append(READ[kind](self, node))
        return tuple(result)

    def _list(self, node: ast.List) -> Node:
        is_target = type(node.ctx) is ast.Store  # `[a, b] = pair` is the same as `a, b = pair`
        return ("tuple" if is_target else "list", self._many(node.elts))

    def _tuple(self, node: ast.Tuple) -> Node:
        return ("tuple", self._many(node.elts))

    def _set(self, node: ast.Set) -> Node:
        return ("set", self._many(node.elts))

    def _dict(self, node: Any) -> Node:
        return ("dict", self._many(node.keys), self._many(node.values))

    def _ifexp(self, node: ast.IfExp) -> Node:
        test = self.expr(node.test)
        if self.flavors and (lives := self.outcome(test)) is not None:
            return self.expr(node.body if lives else node.orelse)
        return ("ifexp", test, self.expr(node.body), self._within(node.orelse))

    def _boolop(self, node: Any) -> Node:
        return ("and" if type(node.op) is ast.And else "or", self._many(node.values))

    def _unaryop(self, node: Any) -> Node:
        if type(node.op) is ast.Not:
            return ("not", self._within(node.operand))
        return ("parts", (self._within(node.operand),))

    def _binop(self, node: Any) -> Node:
        lhs, rhs = node.left, node.right
        return ("binop", self._within(lhs), self._within(rhs), type(node.op) is ast.BitOr)

    def _compare(self, node: Any) -> Node:
        lhs, ops, operands = node.left, node.ops, node.comparators
        if len(ops) == 1:
            operand = operands[0]
            op = _OPS.get(type(ops[0]), "<")
            return ("compare", READ[type(lhs)](self, lhs), (op,), (READ[type(operand)](self, operand),))
        return (
            "compare",
            READ[type(lhs)](self, lhs),
            tuple([_OPS.get(type(op), "<") for op in ops]),
            self._many(operands),
        )

    def _lambda(self, node: ast.Lambda) -> Node:
        self.attributes.add("lambda")  # stands for a function, as the name of one would
        params = self.params(node.args)
        for param in params:
            self.origins[param[0]] = UNTOLD
        return ("lambda", params, self._within(node.body), at(node))

    def _generators(self, node: Any) -> tuple[Node, ...]:
        if any(g.is_async for g in node.generators):
            self.waits = True
        generators = tuple(
            [(bool(g.is_async), self.expr(g.target), self.expr(g.iter), self._many(g.ifs)) for g in node.generators]
        )
        for is_async, target, iterated, _conditions in generators:
            self.bind(target)
            if is_async:
                self.take_async(iterated, "for")
            else:
                self.take(iterated)
        return generators

    def _comprehension(self, node: Any) -> Node:
        kind = {ast.ListComp: "list", ast.SetComp: "set"}.get(type(node), "generator")
        waits, self.waits = self.waits, False
        item = self.expr(node.elt)
        self.waits = self.end_item(kind, waits=waits)
        return ("comp", kind, (item,), self._generators(node), at(node))

    def _dict_comprehension(self, node: ast.DictComp) -> Node:
        return ("comp", "dict", (self.expr(node.key), self.expr(node.value)), self._generators(node), at(node))

    def _yield(self, node: ast.Yield) -> Node:
        self.generator = True
        return ("yield", None if node.value is None else self.expr(node.value))

    def _yield_from(self, node: ast.YieldFrom) -> Node:
        self.generator = True
        return ("yieldfrom", self.expr(node.value))

    def _starred(self, node: ast.Starred) -> Node:
        return ("star", self.expr(node.value))

    def _joined(self, node: Any) -> Node:
        values: list[Node] = []
        for part in node.values:
            if type(part) is _FormattedValue:
                value, spec = part.value, part.format_spec
                values.append(READ[type(value)](self, value))
                if spec is not None:  # `{price:{width}}`
                    values += self._joined(spec)[1]
        return ("fstr", tuple(values))

    def _formatted(self, node: ast.FormattedValue) -> Node:
        return ("fstr", (self.expr(node.value),))

    def _walrus(self, node: ast.NamedExpr) -> Node:
        self.origins[node.target.id] = UNTOLD
        return ("walrus", node.target.id, self.expr(node.value))

    def _slice(self, node: ast.Slice) -> Node:
        return ("slice", tuple([self.expr(p) for p in (node.lower, node.upper, node.step) if p is not None]))

    def _parts(self, node: Any) -> Node:
        return ("parts", tuple([self.expr(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]))

    def params(self, args: Any) -> tuple[Param, ...]:
        """The parameters of a function, in order, each with its annotation and its default."""
        result: list[Param] = []
        first, plain, defaults = args.posonlyargs, args.args, args.defaults
        star, keyword_only, double = args.vararg, args.kwonlyargs, args.kwarg
        if first or defaults:
            without = len(first) + len(plain) - len(defaults)
            for index, arg in enumerate((*first, *plain)):
                default = None if index < without else defaults[index - without]
                result.append(self._param(arg, default, "/" if index < len(first) else ""))
        else:
            for arg in plain:
                note = arg.annotation
                result.append((arg.arg, None if note is None else READ[type(note)](self, note), None, ""))
        if star is not None:
            result.append(self._param(star, None, "*"))
        if keyword_only:
            for arg, default in zip(keyword_only, args.kw_defaults, strict=True):
                result.append(self._param(arg, default, "="))
        if double is not None:
            result.append(self._param(double, None, "**"))
        return tuple(result)

    def _param(self, arg: Any, default: Any, kind: str) -> Param:
        note = arg.annotation
        return (
            arg.arg,
            None if note is None else self.expr(note),
            None if default is None else self.expr(default),
            kind,
        )


READ: dict[type, Callable[[ExpressionReader, Any], Any]] = {
    # Of kinds that are newer than this table (t-strings, say) the parts are read.
    **dict.fromkeys(ast.expr.__subclasses__(), ExpressionReader._parts),
    type(None): _no_key,
    ast.Name: ExpressionReader._name,
    ast.Attribute: ExpressionReader._attribute,
    ast.Call: ExpressionReader.called,
    ast.Await: ExpressionReader._await,
    ast.Constant: ExpressionReader._constant,
    ast.Subscript: ExpressionReader._subscript,
    ast.List: ExpressionReader._list,
    ast.Tuple: ExpressionReader._tuple,
    ast.Set: ExpressionReader._set,
    ast.Dict: ExpressionReader._dict,
    ast.IfExp: ExpressionReader._ifexp,
    ast.BoolOp: ExpressionReader._boolop,
    ast.UnaryOp: ExpressionReader._unaryop,
    ast.BinOp: ExpressionReader._binop,
    ast.Compare: ExpressionReader._compare,
    ast.Lambda: ExpressionReader._lambda,
    ast.ListComp: ExpressionReader._comprehension,
    ast.SetComp: ExpressionReader._comprehension,
    ast.GeneratorExp: ExpressionReader._comprehension,
    ast.DictComp: ExpressionReader._dict_comprehension,
    ast.Yield: ExpressionReader._yield,
    ast.YieldFrom: ExpressionReader._yield_from,
    ast.Starred: ExpressionReader._starred,
    ast.JoinedStr: ExpressionReader._joined,
    ast.FormattedValue: ExpressionReader._formatted,
    ast.NamedExpr: ExpressionReader._walrus,
    ast.Slice: ExpressionReader._slice,
}
"""The reader of each kind of expression; functions of the class, so that no table is made for each file."""
