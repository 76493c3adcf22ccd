"""What is noted while a file is read from top to bottom, whatever its syntax tree is made of."""

import marshal
from typing import Any

from troth.analysis.facts.fields import (
    ATTR_BASE,
    ATTR_NAME,
    CALL_FUNC,
    COMP_KIND,
    CONST_TYPE,
    CONST_VALUE,
    INDEX_BASE,
    ITEMS,
    KIND,
    NAME_ID,
    VALUE,
)
from troth.analysis.facts.model import (
    ABSTRACT,
    ASYNC,
    GENERATOR,
    PARAM_NAME,
    WAITS,
    At,
    ClassFacts,
    FileFacts,
    FunctionFacts,
    ImportFacts,
    Node,
    Param,
)

__all__ = ["FALSE", "LONGEST_ROW", "LONGEST_STRING", "MOST_BRANCHES", "NOTHING", "TRUE", "UNTOLD", "Reading", "written"]

LONGEST_ROW = 150  # of operators, attributes, subscripts: brackets, which nest as well, end at 200 for Python itself
LONGEST_STRING = 120  # longer ones are neither names nor types; dict keys and getattr names are far shorter
MOST_BRANCHES = 100  # `elif` that are read one inside another

NOTHING: Node = ("const", "None")
TRUE: Node = ("const", "bool", "True")
FALSE: Node = ("const", "bool", "False")
UNTOLD = "?"

_NO_BODY = marshal.dumps(())
_new: Any = tuple.__new__  # what a NamedTuple calls behind a function of its own


class NameTable(dict[str, Node]):
    """The names that stand somewhere as a value, each with the one tuple for all its places."""

    def __missing__(self, name: str) -> Node:
        node = self[name] = ("name", name)
        return node


class ClassReading:
    """A class while its body is being read."""

    def __init__(self, name: str, qualname: str, index: int, outer: "ClassReading | None") -> None:
        self.name = name
        self.qualname = qualname
        self.index = index
        self.outer = outer
        self.prefix_around = ""
        self.self_around: tuple[str, ClassReading] | None = None
        self.methods: dict[str, list[int]] = {}
        self.annotations: dict[str, Node] = {}
        self.values: dict[str, Node] = {}
        self.self_attributes: list[tuple[str, int, Node | None, Node | None]] = []


class FunctionReading:
    """A function while its body is being read, with what was noted in the one around it."""

    def __init__(self, name: str, index: int, decorators: tuple[Node, ...], params: tuple[Param, ...]) -> None:
        self.name = name
        self.index = index
        self.decorators = decorators
        self.params = params
        self.qualname = ""
        self.parent = 0
        self.prefix = ""
        self.owner: ClassReading | None = None
        self.own: tuple[str, ClassReading] | None = None
        self.calls: set[str] = set()
        self.awaited: set[str] = set()
        self.keyed: set[str] = set()
        self.taken: set[str] = set()
        self.wanted: set[str] = set()
        self.generator = False
        self.waits = False
        self.noted: tuple[Any, ...] = ()  # of this one, once its body was read


class Reading:
    """What is noted of a file; knows at each moment in which function and class it is.

    Two readers stand on this, one for each kind of syntax tree: they say what stands in the file, and everything that
    follows from it is decided here.
    """

    def __init__(self) -> None:
        self.calls: set[str] = set()
        self.awaited: set[str] = set()
        self.keyed: set[str] = set()
        self.taken: set[str] = set()
        self.origins: dict[str, str] = {}  # of each variable; "?" where there is none that is simple, or several
        self.names = NameTable()
        self.attributes: set[str] = set()  # that stand somewhere as a value; "lambda" for any of those
        self.generator = False
        self.waits = False
        self.row = 0  # expressions, one inside another without a bracket, that are being read
        self.flavors: dict[str, bool] = {}  # what the file says of itself: `_IS_SYNC = True`
        self.imports: list[ImportFacts] = []
        self.functions: list[Any] = [None]  # None for those that are being read
        self.classes: list[Any] = []
        self.variables: list[tuple[str, Node | None, Node | None]] = []
        self.exports: tuple[str, ...] | None = None
        self.function = 0  # the one being read
        self.prefix = ""
        self.owner: ClassReading | None = None  # the class whose body is being read, None inside its methods
        self.own: tuple[str, ClassReading] | None = None  # the name of `self` here, and whose attributes it has
        self.around: list[dict[str, str]] = []  # the origins of variables in the functions around
        self.wanted: set[str] = set()  # variables of which something is called, here or in a function inside

    def facts(self, body: tuple[Node, ...], last_line: int, *, is_async: bool) -> FileFacts:
        """The facts of the file, after all of it was read."""
        self.functions[0] = FunctionFacts(
            "<module>",
            "",
            -1,
            -1,
            ASYNC if is_async else 0,
            (1, 0, last_line, 0),
            (),
            None,
            (),
            tuple(sorted(self.calls)),
            tuple(sorted(self.awaited)),
            tuple(sorted(self.keyed)),
            tuple(sorted(self.taken)),
            (),
            marshal.dumps(body),
        )
        return FileFacts(
            tuple(self.imports),
            tuple(self.functions),
            tuple(self.classes),
            tuple(self.variables),
            self.exports,
            tuple(sorted(self.attributes.union(self.names))),
        )

    def bind(self, target: Node) -> None:
        """Note that the variables of `target` get values of which nothing simple can be said."""
        kind = target[0]
        if kind == "name":
            self.origins[target[1]] = UNTOLD
        elif kind == "tuple" or kind == "list":  # noqa: PLR1714  compiled, a set is made each time
            for part in target[ITEMS]:
                self.bind(part)
        elif kind == "star":
            self.bind(target[VALUE])

    def bind_to(self, name: str, value: Node, how: str = "") -> None:
        """Note that a variable gets this value, or what entering it with "with" or "async with" gives."""
        origin = _origin(value)
        if how and origin != UNTOLD:
            origin = f"{how} {origin}"
        if self.origins.setdefault(name, origin) != origin:
            self.origins[name] = UNTOLD

    def take(self, node: Node) -> None:
        """Note what a plain `with`, `for` or comprehension takes: `lock`, `.lock` of anything, `connect()`."""
        kind = node[0]
        if kind == "await":
            node = node[VALUE]
            kind = node[0]
        if kind == "name":
            self.taken.add(node[NAME_ID])
        elif kind == "attr":
            self.taken.add(f".{node[ATTR_NAME]}")
        elif kind == "call":
            callee = node[CALL_FUNC]
            if callee[KIND] == "name":
                self.taken.add(f"{callee[NAME_ID]}()")
            elif callee[KIND] == "attr":
                self.taken.add(f"{callee[ATTR_NAME]}()")

    def take_async(self, node: Node, how: str) -> None:
        """Note what `await`, `async for` or `async with` takes, where that is no call whose callee is noted."""
        kind = node[0]
        if kind == "name":
            self.taken.add(f"{how} {node[NAME_ID]}")
        elif kind == "attr":
            self.taken.add(f"{how} .{node[ATTR_NAME]}")
        elif kind == "call":
            self.taken.add(f"{how} {written(node[CALL_FUNC])}()")
        else:
            self.taken.add(f"{how} []")

    def end_item(self, kind: str, *, waits: bool) -> bool:
        """Note a generator whose items are awaited, which is an async one; whether the function waits by now."""
        if self.waits and kind == "generator":
            self.taken.add("for await")
        return self.waits or waits

    def key(self, base: Node) -> None:
        """Note of what an item is taken by a word: `reply["id"]`."""
        kind = base[0]
        if kind == "name":
            self.keyed.add(base[NAME_ID])
        elif kind == "await":
            self.keyed.add("await")
        elif kind == "index" and base[INDEX_BASE][KIND] == "name":
            self.keyed.add(f"{base[INDEX_BASE][NAME_ID]}[]")

    def wait_for(self, value: Node) -> None:
        """Note what is awaited, where that is no call."""
        if value[KIND] == "await" and value[VALUE][KIND] == "call":
            self.awaited.add(f"await {written(value[VALUE][CALL_FUNC])}")  # its result is awaited too
        self.take_async(value, "await")
        callee = written(value)
        if callee:
            self.calls.add(callee)  # `await f` without the call is judged like a call that is not awaited

    def outcome(self, test: Node) -> bool | None:
        """What a condition always comes out as: a constant, or the word by which a file says of which flavor it is."""
        if test[KIND] == "const" and test[CONST_TYPE] == "bool":
            return len(test) == 3 and test[CONST_VALUE] == "True"
        if not self.flavors:
            return None
        if test[KIND] == "not":
            inner = self.outcome(test[VALUE])
            return None if inner is None else not inner
        return self.flavors.get(test[NAME_ID]) if test[KIND] == "name" else None

    def expression(self, value: Node, place: At) -> Node | None:
        """The statement that consists of an expression alone; None where it says nothing.

        `place` is that of a name, which has none itself.
        """
        if value[KIND] == "name":
            return ("expr", value, place)
        if value[KIND] == "const":
            return None
        if self.function == 0 and self.exports is not None and value[KIND] == "call":
            callee = value[CALL_FUNC]
            if callee[KIND] == "attr" and callee[ATTR_BASE] == ("name", "__all__"):  # `__all__.extend(…)`
                self.exports += ("*",)
        return ("expr", value)

    def assign(self, targets: tuple[Node, ...], value: Node) -> Node:
        """The statement that gives a value to variables."""
        first = targets[0]
        if not self.function and value[KIND] == "const" and value[CONST_TYPE] == "bool" and first[KIND] == "name":
            value = self._flavor(first[NAME_ID], value)
        if self.function and self.owner is None and len(targets) == 1 and first[KIND] == "name":  # most of them
            name = first[NAME_ID]
            origin = _origin(value)
            if self.origins.setdefault(name, origin) != origin:
                self.origins[name] = UNTOLD
            return ("assign", targets, value)
        for target in targets:
            self.note_assignment(target, None, value)
            if target[KIND] == "name" and self.owner is None:
                self.bind_to(target[NAME_ID], value)
            else:
                self.bind(target)
        return ("assign", targets, value)

    def _flavor(self, name: str, value: Node) -> Node:
        """`_IS_SYNC = True`: a file that says which of two flavors it is, made of one text."""
        if "sync" not in name.lower() or name in self.flavors:
            self.flavors.pop(name, None)
            return ("const", "bool")
        self.flavors[name] = value[2] == "True"
        return value

    def annotate(self, target: Node, annotation: Node, value: Node | None) -> Node:
        """The statement that gives a type to a variable, and perhaps a value."""
        self.bind(target)
        self.note_assignment(target, annotation, value)
        return ("annassign", target, annotation, value)

    def augment(self, target: Node, value: Node) -> Node:
        """The statement that adds to a variable, or the like."""
        self.bind(target)
        if self.exports is not None and self.function == 0 and target == ("name", "__all__"):
            self.exports += _exported(value)
        return ("augassign", target, value)

    def note_assignment(self, target: Node, annotation: Node | None, value: Node | None) -> None:
        """Note what variables of the file, of a class or of `self` get."""
        kind = target[0]
        if kind == "name":
            if self.owner is not None:
                if annotation is not None:
                    self.owner.annotations[target[1]] = annotation
                if value is not None:
                    self.owner.values[target[1]] = value
            elif self.function == 0:
                self.variables.append((target[NAME_ID], annotation, value))
                if target[NAME_ID] == "__all__" and value is not None and value[KIND] in {"list", "tuple"}:
                    self.exports = _exported(value)
        elif kind == "attr":
            own = self.own
            if own is not None and target[ATTR_BASE] == ("name", own[0]):
                own[1].self_attributes.append((target[ATTR_NAME], self.function, annotation, value))
        elif kind == "tuple" and value is not None:
            items = value[ITEMS] if value[KIND] == "tuple" and len(value[ITEMS]) == len(target[ITEMS]) else None
            starred = any(item[KIND] == "star" for item in target[ITEMS])
            for index, item in enumerate(target[ITEMS]):
                which = ("const", "int") if starred else ("const", "int", index)
                part = items[index] if items is not None else ("index", value, which)
                if item[KIND] in {"name", "attr"}:
                    self.note_assignment(item, None, part)

    def iterate(self, target: Node, iterated: Node) -> None:
        """Note the variable of a loop."""
        self.bind(target)
        if self.function == 0 and self.owner is None and target[KIND] == "name":
            self.variables.append((target[NAME_ID], None, ("index", iterated, ("const", "int"))))

    def enter(self, target: Node, value: Node, *, is_async: bool) -> None:
        """Note the variable of a `with`."""
        if target[KIND] == "name" and self.owner is None and value[KIND] == "call":
            self.bind_to(target[NAME_ID], value, "async with" if is_async else "with")
        else:
            self.bind(target)
        self.note_assignment(target, None, ("entered", is_async, value))

    def import_modules(self, names: list[tuple[str, str | None]]) -> Node:
        """The statement `import a.b, c as d`."""
        bound: list[tuple[str, str, str | None, int]] = []
        for module, alias in names:
            if alias is None:
                local = module.partition(".")[0]
                bound.append((local, local, None, 0))
                if local != module:  # the submodule becomes an attribute of the package
                    self.imports.append(ImportFacts(self.function, "", module, None, 0))
            else:
                bound.append((alias, module, None, 0))
        return self.import_names(tuple(bound))

    def import_names(self, names: tuple[tuple[str, str, str | None, int], ...]) -> Node:
        """The statement that binds `names`, each to a module, or to a name in one."""
        imports, function, origins = self.imports, self.function, self.origins
        for binding in names:
            origins[binding[0]] = UNTOLD
            imports.append(_new(ImportFacts, (function, *binding)))
            if self.owner is not None:
                self.owner.values[binding[0]] = ("imported", *binding[1:])
        return ("import", names)

    def scope(self, names: list[str]) -> Node:
        """The statements `global` and `nonlocal`."""
        for name in names:
            self.origins[name] = UNTOLD
            for origins in self.around:
                origins[name] = UNTOLD
        return ("scope", " ".join(names))

    def begin_function(self, name: str, decorators: tuple[Node, ...], params: tuple[Param, ...]) -> FunctionReading:
        """Step into a function; from now on all that is noted is about it."""
        reading = FunctionReading(name, len(self.functions), decorators, params)
        self.functions.append(None)
        self.origins[name] = UNTOLD
        owner, own = self.owner, self.own
        reading.parent, reading.prefix, reading.owner, reading.own = self.function, self.prefix, owner, own
        reading.calls, reading.awaited, reading.keyed, reading.taken = self.calls, self.awaited, self.keyed, self.taken
        reading.generator, reading.waits, reading.wanted = self.generator, self.waits, self.wanted
        if owner is not None:
            owner.methods.setdefault(name, []).append(reading.index)
            is_static = decorators and ("name", "staticmethod") in decorators
            has_self = params and not is_static and (params[0][3] == "" or params[0][3] == "/")
            self.own = (params[0][0], owner) if has_self else None
        elif own is not None and own[0] in [param[PARAM_NAME] for param in params]:
            self.own = None
        reading.qualname = self.prefix + name
        self.function, self.prefix, self.owner = reading.index, reading.qualname + ".", None
        self.calls, self.awaited, self.keyed, self.taken, self.wanted = set(), set(), set(), set(), set()
        self.generator = self.waits = False
        self.around.append(self.origins)
        self.origins = {}
        return reading

    def leave_function(self, reading: FunctionReading, body: tuple[Node, ...], *, is_async: bool) -> None:
        """Step out of a function again."""
        flags = ASYNC if is_async else 0
        if self.generator:
            flags |= GENERATOR
        if self.waits:
            flags |= WAITS
        if not body or (body[0][KIND] == "raise" and _only_refuses(body)):
            flags |= ABSTRACT
        calls, awaited, keyed, iterated = self.calls, self.awaited, self.keyed, self.taken
        reading.noted = (
            flags,
            tuple(sorted(calls) if len(calls) > 1 else calls),
            tuple(sorted(awaited) if len(awaited) > 1 else awaited),
            tuple(sorted(keyed) if len(keyed) > 1 else keyed),
            tuple(sorted(iterated) if len(iterated) > 1 else iterated),
            self._told_origins(is_inside=reading.parent > 0) if self.origins or reading.parent else (),
            marshal.dumps(body) if body else _NO_BODY,
        )
        self.origins = self.around.pop()
        if reading.parent:
            self.wanted |= reading.wanted
        else:
            self.wanted = reading.wanted
        self.calls, self.awaited, self.keyed, self.taken = reading.calls, reading.awaited, reading.keyed, reading.taken
        self.generator, self.waits = reading.generator, reading.waits
        self.function, self.prefix, self.owner, self.own = (
            reading.parent,
            reading.prefix,
            reading.owner,
            reading.own,
        )

    def keep_function(self, reading: FunctionReading, place: At, returns: Node | None) -> Node:
        """The statement that defines a function, all of which was read."""
        flags, calls, awaited, keyed, iterated, origins, body = reading.noted
        owner = reading.owner
        self.functions[reading.index] = _new(
            FunctionFacts,
            (
                reading.name,
                reading.qualname,
                reading.parent,
                -1 if owner is None else owner.index,
                flags,
                place,
                reading.params,
                returns,
                reading.decorators,
                calls,
                awaited,
                keyed,
                iterated,
                origins,
                body,
            ),
        )
        return ("def", reading.index)

    def _told_origins(self, *, is_inside: bool) -> tuple[tuple[str, str], ...]:
        """The variables of which a method is called, here or in a function inside, with where they come from."""
        needed, calls, awaited = self.wanted, self.calls, self.awaited
        if is_inside:  # the functions around have to know, too
            for callee in (*calls, *awaited):
                needed.add(callee.partition(".")[0])
        text = ""
        known_origins: list[tuple[str, str]] = []
        for pair in self.origins.items():
            name, origin = pair
            if origin == UNTOLD:
                continue
            if not text and not is_inside:  # what `needed` would say is looked for in one text
                text = "\n".join(("", *calls, *awaited, ""))
            if name in needed or f"\n{name}." in text or f"\n{name}\n" in text:
                known_origins.append(pair)
        return tuple(known_origins)

    def begin_class(self, name: str) -> ClassReading:
        """Step into the body of a class."""
        self.origins[name] = UNTOLD
        reading = ClassReading(name, f"{self.prefix}{name}", len(self.classes), self.owner)
        self.classes.append(None)
        reading.prefix_around, reading.self_around = self.prefix, self.own
        self.owner, self.prefix = reading, f"{reading.qualname}."
        return reading

    def leave_class(self, reading: ClassReading) -> None:
        """Step out of the body of a class."""
        self.owner, self.prefix, self.own = reading.outer, reading.prefix_around, reading.self_around
        if reading.outer is not None:
            reading.outer.values[reading.name] = ("classref", reading.index)

    def keep_class(
        self,
        reading: ClassReading,
        place: At,
        bases: tuple[Node, ...],
        decorators: tuple[Node, ...],
        body: tuple[Node, ...],
    ) -> Node:
        """The statement that defines a class, all of which was read."""
        self.classes[reading.index] = ClassFacts(
            reading.name,
            reading.qualname,
            self.function,
            -1 if reading.outer is None else reading.outer.index,
            place,
            bases,
            decorators,
            tuple([(name, tuple(which)) for name, which in reading.methods.items()]),
            tuple(reading.annotations.items()),
            tuple(reading.values.items()),
            tuple(reading.self_attributes),
        )
        return ("class", reading.index, body)


def written(func: Node) -> str:
    """A callee as it is written, as far as it consists of names: `client.users.get`, `?.get`."""
    kind = func[0]
    if kind == "name":  # nearly all are this or the next
        return str(func[NAME_ID])
    if kind == "attr" and func[ATTR_BASE][KIND] == "name":
        return f"{func[ATTR_BASE][NAME_ID]}.{func[ATTR_NAME]}"
    names: list[str] = []
    while func[KIND] == "attr":
        names.append(func[ATTR_NAME])
        func = func[ATTR_BASE]
    if func[KIND] == "name":
        names.append(func[NAME_ID])
    elif names:
        names.append("?")
    else:
        return "[]" if kind == "index" else "()" if kind == "call" else ""
    names.reverse()
    return ".".join(names)


def _origin(value: Node) -> str:
    kind = value[0]
    if kind == "call":
        callee = written(value[CALL_FUNC])
        return f"{callee}()" if callee and callee[0] not in "?[(" else UNTOLD
    if kind == "await" and value[VALUE][KIND] == "call":
        origin = _origin(value[VALUE])
        return origin if origin == UNTOLD else f"await {origin}"
    if kind == "dict" or kind == "list" or kind == "set":  # noqa: PLR1714  compiled, a set is made each time
        return str(kind)
    if kind == "comp" and value[COMP_KIND] != "generator":
        return str(value[COMP_KIND])
    return "str" if kind == "fstr" else UNTOLD


def _only_refuses(body: tuple[Node, ...]) -> bool:
    """Whether there is nothing but `raise NotImplementedError`; `pass` and docstrings are not among the statements."""
    for kind, *parts in body:
        raised = parts[0]
        if kind != "raise" or raised is None:
            return False
        if (raised[CALL_FUNC] if raised[KIND] == "call" else raised) != ("name", "NotImplementedError"):
            return False
    return True


def _exported(value: Node) -> tuple[str, ...]:
    """The names in a list for `__all__`; `*` stands for those that are not written out."""
    if value[KIND] not in {"list", "tuple"}:
        return ("*",)
    names = tuple(i[CONST_VALUE] for i in value[ITEMS] if i[KIND] == "const" and len(i) == 3)
    return names if len(names) == len(value[ITEMS]) else (*names, "*")
