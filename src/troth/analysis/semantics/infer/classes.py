"""The classes of a program: their order of resolution, their members and the types of their attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    AT,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    DICT_KEYS,
    FOR_TARGET,
    INDEX_BASE,
    INDEX_KEY,
    ITEMS,
    KIND,
    NAME_ID,
)
from troth.analysis.facts.model import body_of
from troth.analysis.facts.names import last_name, other_name_of
from troth.analysis.facts.nodes import children
from troth.analysis.knowledge.corrections import correction
from troth.analysis.semantics.infer.container_contents import filled, is_empty
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    NONE,
    OF_CLASS,
    Builtin,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    Value,
    members_of,
    says_something,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from troth.analysis.facts.model import ClassFacts, Node
    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["Classes", "is_protocol", "says_protocol"]

_DEEPEST = 40
_MOST_CHILDREN = 100  # of a base that so many derive from, nobody knows which is meant

# Where protocols of types come from.
_OF_TYPING = frozenset({"typing", "typing_extensions", "collections", "abc"})
# Of their classes it is known what they do not have.
_KNOWN_WHOLE = (
    "builtins.",
    "typing.",
    "typing_extensions.",
    "abc.",
    "enum.",
    "contextlib.",
    "collections.abc.",
    "_collections_abc.",
)
# Bases that bring no attributes of their own.
_SAYING_NOTHING = frozenset(
    {"Awaitable", "Generic", "Protocol", "ABC", "AsyncIterable", "Hashable", "Sized"}
    | {"AsyncContextManager", "AbstractAsyncContextManager"}
)


class Classes:
    """Answers questions about classes; every answer is kept."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._orders: MutableMapping[Class, tuple[Class | LibraryClass | None, ...]] = program.answers()
        self._attributes: MutableMapping[tuple[Class, str], Value | None] = program.answers()
        self._asking: set[tuple[Class, str]] = set()
        self._children: MutableMapping[Class, list[Class]] = program.answers()
        self._generic: dict[Class, tuple[str, ...]] = {}
        self._bound_by_bases: MutableMapping[tuple[Class, Class], dict[str, Value | None]] = program.answers()
        self._remade: MutableMapping[Class, bool] = program.answers()
        self._below: MutableMapping[tuple[Class, str], Value | None] = program.answers()

    def order(self, cls: Class) -> tuple[Class | LibraryClass | None, ...]:
        """The class and its ancestors in the order Python looks through them; None stands for an unknown base."""
        answer = self._orders.get(cls)
        if answer is None:
            self._orders[cls] = (cls,)  # a class that is its own ancestor ends here
            met = self._preorder(cls, 0)
            last = {id(entry): place for place, entry in enumerate(met) if entry is not None}
            answer = tuple(e for place, e in enumerate(met) if e is None or last[id(e)] == place)
            self._orders[cls] = answer
        return answer

    def _preorder(self, cls: Class, depth: int) -> list[Class | LibraryClass | None]:
        met: list[Class | LibraryClass | None] = [cls]
        if depth > _DEEPEST:
            return met
        for base in cls.facts.bases:
            node: Node = base[INDEX_BASE] if base[KIND] == "index" else base
            if node[KIND] in {"star", "call"}:
                met.append(None)
                continue
            if last_name(node) in _SHAPELESS and not _is_a_namesake(cls, node):
                continue
            value = self._program.static(
                cls.module, cls.module.function(cls.facts.parent) if cls.facts.parent else None
            ).value(node)
            if isinstance(value, ClassObject) and value.cls is not cls:
                if isinstance(value.cls, Class):
                    met.extend(self._preorder(value.cls, depth + 1))
                else:
                    met.extend(library.library_class(name) for name in library.lineage(value.cls.qualified))
            else:
                met.append(None)
        return met

    def member(
        self, cls: Class | LibraryClass, name: str, receiver: Value, *, after: Class | None = None
    ) -> Value | None:
        """What `receiver.name` is; `after` leaves out the classes up to that one, as `super()` does."""
        if isinstance(cls, LibraryClass):
            return self._library_member(cls, name, receiver)
        waiting = after is not None
        is_remade = is_empty = False
        for ancestor in self.order(cls):
            if waiting:
                waiting = ancestor is not after
                continue
            if ancestor is None:
                continue
            if isinstance(ancestor, LibraryClass):
                member = self._library_member(ancestor, name, receiver)
                if member is not None:
                    return member
                continue
            is_remade = is_remade or self._is_remade(ancestor)
            if name in ancestor.methods:
                return NONE if is_empty else None if is_remade else self._method(ancestor, name, receiver)
            method = self._method_behind(ancestor, name) if isinstance(receiver, Instance) else ""
            if method:
                return None if is_remade else self._method(ancestor, method, receiver)
            attribute = self._attribute(ancestor, name, receiver)
            if attribute is NONE and name not in ancestor.values:
                is_empty = True  # to be filled, perhaps by a method of a mixin further up
            elif attribute is not _MISSING:
                return attribute  # type: ignore[return-value]
        return (self._filled_below(cls, name) or NONE) if is_empty else None

    def beside_mixin(self, mixin: Class, name: str) -> Value | None:
        """What `super().name` is in a class that has no such base itself: the classes it is mixed into have one.

        Only where all of them agree on its color, and no base that nobody knows comes first.
        """
        key = (mixin, f"super().{name}")
        if key not in self._below:
            self._below[key] = None  # while it is being found out
            self._below[key] = self._look_beside(mixin, name)
        return self._below[key]

    def _look_beside(self, mixin: Class, name: str) -> Value | None:
        if None in self.order(mixin):
            return None
        next_in_line: dict[Function, Instance] = {}
        for child in self.children(mixin)[:_MOST_CHILDREN]:
            order = self.order(child)
            after = order[order.index(mixin) + 1 :]
            owner = next((c for c in after if c is None or (isinstance(c, Class) and name in c.methods)), None)
            if owner is None and (None in after or any(isinstance(c, LibraryClass) for c in after)):
                return None
            if isinstance(owner, Class):
                next_in_line |= {owner.module.function(index): Instance(owner) for index in owner.methods[name]}
        if len({function.is_async for function in next_in_line}) != 1:
            return None
        return union([self._bound(function, receiver) for function, receiver in next_in_line.items()])

    def _filled_below(self, cls: Class, name: str) -> Value | None:
        """What the classes that derive from `cls` set an attribute to which it leaves empty, if all set the same.

        A part of a larger class says `self.client = None`, and only the whole knows the client.
        """
        key = (cls, name)
        if key not in self._below:
            self._below[key] = None  # while it is being found out
            self._below[key] = self._look_below(cls, name)
        return self._below[key]

    def _look_below(self, cls: Class, name: str) -> Value | None:
        own = set(self.order(cls))
        children = self.children(cls)
        if len(children) > _MOST_CHILDREN:
            return None
        below = dict.fromkeys(ancestor for child in children for ancestor in self.order(child) if ancestor not in own)
        values = [
            member
            for ancestor in below
            if isinstance(ancestor, Class)
            for attribute in [self._attribute(ancestor, name, NONE)]
            if attribute is not _MISSING and attribute is not NONE
            for member in members_of(attribute)  # type: ignore[arg-type]
            if member is not NONE
        ]
        first = values[0] if values else None
        if isinstance(first, External):
            return first if all(isinstance(v, External) and v.path == first.path for v in values) else None
        if not isinstance(first, Instance) or not all(isinstance(v, Instance) and v.cls == first.cls for v in values):
            return None
        why = first.why or (f"`{name}` of a class that derives from `{cls.name}` is {OF_CLASS}", *cls.place)
        return Instance(first.cls, first.args, why, guess=True)

    def _is_remade(self, cls: Class) -> bool:
        """Whether a decorator of the project goes through the methods of a class, and sets others in their place."""
        if not cls.facts.decorators:
            return False
        if cls not in self._remade:
            self._remade[cls] = False  # while it is being found out
            scope = self._program.static(
                cls.module, cls.module.function(cls.facts.parent) if cls.facts.parent else None
            )
            values = [scope.value(node[CALL_FUNC] if node[KIND] == "call" else node) for node in cls.facts.decorators]
            self._remade[cls] = any(
                isinstance(value, FunctionValue)
                and isinstance(value.function, Function)
                and _sets_methods(value.function)
                for value in values
            )
        return self._remade[cls]

    def holder(self, cls: Class, name: str) -> Class | None:
        """The class, `cls` or the next one above it in the project, whose method of that name its objects have."""
        return next(
            (ancestor for ancestor in self.order(cls) if isinstance(ancestor, Class) and name in ancestor.methods), None
        )

    def is_method(self, cls: Class | LibraryClass, name: str) -> bool:
        """Whether a name is that of a method or property, not only of an attribute that somebody sets."""
        if not isinstance(cls, Class):
            return True
        return any(
            name in ancestor.methods
            if isinstance(ancestor, Class)
            else library.member(ancestor.qualified, name) is not None
            for ancestor in self.order(cls)
            if ancestor is not None
        )

    def has(self, cls: Class | LibraryClass, name: str) -> bool | None:
        """Whether objects of `cls` have a method `name`; None where an unknown base might have it."""
        if isinstance(cls, LibraryClass):
            if library.member(cls.qualified, name) is not None:
                return True
            return None
        unknown = False
        for ancestor in self.order(cls):
            if ancestor is None:
                unknown = True
            elif isinstance(ancestor, LibraryClass):
                if library.member(ancestor.qualified, name) is not None:
                    return True
                unknown = unknown or not ancestor.qualified.startswith(_KNOWN_WHOLE)
            elif name in ancestor.methods or name in ancestor.values:
                return True
        return None if unknown else False

    def is_only_async(self, cls: Class | LibraryClass, how: str) -> bool:
        """Whether objects of `cls` can be entered (`__aenter__`) or looped over (`__aiter__`) asynchronously alone."""
        if isinstance(cls, LibraryClass):
            return library.is_only_async(cls.qualified, how)
        plain = {"__aenter__": "__enter__", "__aiter__": "__iter__"}[how]
        if self.has(cls, how) is not True or any(
            self.has(cls, dunder) is True for dunder in ("__getitem__", "__getattr__")
        ):
            return False
        if self.has(cls, plain) is False:
            return True
        libraries = [ancestor for ancestor in self.order(cls) if isinstance(ancestor, LibraryClass)]
        mine = any(isinstance(ancestor, Class) and plain in ancestor.methods for ancestor in self.order(cls))
        return (
            not mine
            and self.is_complete(cls)
            and any(library.is_only_async(library_cls.qualified, how) for library_cls in libraries)
        )

    def is_complete(self, cls: Class) -> bool:
        """Whether every ancestor is known, so that what is not found is not there."""
        return None not in self.order(cls)

    def mentions(self, cls: Class, name: str) -> bool:
        """Whether the class or an ancestor has such an attribute at all, or makes attributes up (`__getattr__`)."""
        for ancestor in self.order(cls):
            if isinstance(ancestor, LibraryClass):
                if ancestor.name in _SAYING_NOTHING and ancestor.qualified.startswith(_KNOWN_WHOLE):
                    continue
                return True  # its table lists what matters, not everything
            if isinstance(ancestor, Class) and (
                name in ancestor.methods
                or name in ancestor.values
                or name in ancestor.annotations
                or "__getattr__" in ancestor.methods
                or any(a[0] == name for a in ancestor.facts.self_attributes)
            ):
                return True
        return False

    def may_be_given(self, cls: Class, name: str) -> bool:
        """Whether the class, or an ancestor in the project, has room for such an attribute, whatever it may hold."""
        return any(
            name in ancestor.values
            or name in ancestor.annotations
            or "__getattr__" in ancestor.methods
            or "__getattribute__" in ancestor.methods
            or any(a[0] == name for a in ancestor.facts.self_attributes)
            for ancestor in self.order(cls)
            if isinstance(ancestor, Class)
        )

    def _method(self, cls: Class, name: str, receiver: Value) -> Value | None:
        functions = [cls.module.function(i) for i in cls.methods[name]]
        functions = [f for f in functions if not f.decorated_with("overload", "setter", "deleter")] or functions[-1:]
        if len({f.is_async for f in functions}) == 1:
            functions = functions[-1:]
        return union([self._bound(f, receiver) for f in functions])

    def _bound(self, function: Function, receiver: Value) -> Value | None:
        if function.decorated_with("staticmethod"):
            return FunctionValue(function)
        bound = FunctionValue(function, receiver)
        if isinstance(receiver, Instance) and function.decorated_with(
            "property", "cached_property", "hybrid_property", "async_cached_property", "async_property"
        ):
            value = self._program.calls.property(bound)
            is_open = function.owner is not None and self._is_for_others(function.owner, function.name, value)
            return None if is_open else value
        if isinstance(receiver, Instance) and function.facts.decorators and self._program.effects.is_property(function):
            return self._program.calls.result(bound)
        return bound

    def _method_behind(self, cls: Class, name: str) -> str:
        """The method of `cls` that its body gives a second name, which no class below takes for something else."""
        if name not in cls.values or name in cls.annotations:
            return ""
        method = other_name_of(cls.values[name])
        is_set_twice = sum(value_name == name for value_name, _ in cls.facts.values) > 1
        if method not in cls.methods or is_set_twice or _sets_itself(cls, name):
            return ""
        is_replaced = any(
            name in child.methods or name in child.values or _sets_itself(child, name) for child in self.children(cls)
        )
        return "" if is_replaced else method

    def _is_for_others(self, cls: Class, name: str, value: Value | None) -> bool:
        """Whether a class holds another class that its subclasses replace: the object's own class tells which it is."""
        return isinstance(members_of(value)[-1], ClassObject) and any(
            name in child.values for child in self.children(cls)
        )

    def _attribute(self, cls: Class, name: str, receiver: Value) -> object:
        """The value of an attribute as this class alone tells it; `_MISSING` where it does not mention it."""
        key = (cls, name)
        if key in self._attributes:
            return self._attributes[key]
        if key in self._asking:
            return None
        assigned = [a for a in cls.facts.self_attributes if a[0] == name]
        if name not in cls.annotations and name not in cls.values and not assigned:
            return _MISSING
        self._asking.add(key)
        try:
            value = self._typed(cls, name, assigned)
            if is_empty(value):
                assert value is not None
                value = filled(self._program, cls, name, value)
        finally:
            self._asking.discard(key)
        self._attributes[key] = value
        del receiver
        return value

    def _typed(self, cls: Class, name: str, assigned: list[tuple[str, int, Node | None, Node | None]]) -> Value | None:
        program = self._program
        where = (cls.module.path, cls.facts.at[0])
        vague: Value | None = None  # `Any | None`, where nothing that is assigned tells more
        if name in cls.annotations:
            why = (f"`{name}` is {OF_CLASS} (annotated in `{cls.name}`)", *where)
            annotated = program.types.annotated(cls.annotations[name], cls.module, None, cls, why)
            if says_something(annotated):
                return annotated
            vague = annotated
        values: list[Value | None] = []
        for _, index, annotation, value in assigned:
            function = cls.module.function(index)
            text = f"`self.{name}` is {OF_CLASS} (annotated in `{function.qualname}`)"
            why = (text, cls.module.path, function.facts.at[0])
            if annotation is not None:
                annotated = program.types.annotated(annotation, cls.module, function, cls, why)
                is_table = value is not None and value[KIND] == "dict" and bool(value[DICT_KEYS])
                if says_something(annotated) and (not is_table or _says_what_it_holds(annotated)):
                    return annotated  # but a table written out says more than `dict[str, Callable]`
                vague = annotated
            if value is not None:
                values.append(program.assigned_in(function, name, value))
        if name in cls.values:
            field_value = self._made_by_field(cls, cls.values[name])
            values.append(None if self._is_for_others(cls, name, field_value) else field_value)
        real = [v for v in values if v is not NONE]
        return union(real) if real else (vague or (NONE if values else None))

    def _made_by_field(self, cls: Class, node: Node) -> Value | None:
        """What a value in the body of a class gives its objects: `attr.ib(factory=Store)` gives each a `Store`."""
        scope = self._program.static(cls.module, owner=cls)
        if (
            node[KIND] == "call"
            and (
                node[CALL_FUNC][NAME_ID]
                if node[CALL_FUNC][KIND] == "name"
                else node[CALL_FUNC][ATTR_NAME]
                if node[CALL_FUNC][KIND] == "attr"
                else ""
            )
            in _FIELDS
        ):
            for keyword, argument in node[CALL_KEYWORDS]:
                if keyword in {"factory", "default_factory"}:
                    return scope.value(("call", argument, (), (), node[AT]))
                if keyword == "default":
                    return scope.value(argument)
                if keyword == "type":
                    return self._program.types.annotated(argument, cls.module, None, cls)
            return None
        return scope.value(node)

    def arguments(self, value: Instance, owner: Class) -> dict[str, Value | None]:
        """What the type variables of `owner` stand for in `value`, an object of it or of a subclass."""
        names = self._variables(owner)
        if not names or not isinstance(value.cls, Class):
            return {}
        if value.cls is owner:
            return dict(zip(names, value.args, strict=False)) if value.args else {}
        key = (value.cls, owner)
        if key not in self._bound_by_bases:
            types = self._program.types
            outside, types.arguments = types.arguments, {}
            try:
                self._bound_by_bases[key] = self._through_bases(value.cls, owner, names, 0)
            finally:
                types.arguments = outside
        return self._bound_by_bases[key]

    def _variables(self, cls: Class) -> tuple[str, ...]:
        if cls not in self._generic:
            names: tuple[str, ...] = ()
            for base in cls.facts.bases:
                if base[KIND] == "index" and (
                    base[INDEX_BASE][NAME_ID] if base[INDEX_BASE][KIND] == "name" else base[INDEX_BASE][2]
                ) in {
                    "Generic",
                    "Protocol",
                }:
                    items = base[INDEX_KEY][ITEMS] if base[INDEX_KEY][KIND] == "tuple" else (base[INDEX_KEY],)
                    names = tuple(item[NAME_ID] for item in items if item[KIND] == "name")
            self._generic[cls] = names
        return self._generic[cls]

    def _through_bases(self, cls: Class, owner: Class, names: tuple[str, ...], depth: int) -> dict[str, Value | None]:
        for base in cls.facts.bases if depth < _DEEPEST else ():
            node = base[INDEX_BASE] if base[KIND] == "index" else base
            if node[KIND] not in {"name", "attr"}:
                continue
            value = self._program.static(cls.module).value(node)
            if not isinstance(value, ClassObject) or not isinstance(value.cls, Class) or value.cls is cls:
                continue
            if value.cls is owner:
                items = (
                    ()
                    if base[KIND] != "index"
                    else base[INDEX_KEY][ITEMS]
                    if base[INDEX_KEY][KIND] == "tuple"
                    else (base[INDEX_KEY],)
                )
                return {n: self._program.types.annotated(i, cls.module) for n, i in zip(names, items, strict=False)}
            deeper = self._through_bases(value.cls, owner, names, depth + 1)
            if deeper:
                return deeper
        return {}

    def declared(self, cls: Class, name: str) -> Value | None:
        """What an attribute is annotated with, in the class or where a method sets it."""
        for ancestor in self.order(cls):
            if not isinstance(ancestor, Class):
                continue
            if name in ancestor.annotations:
                return self._program.types.annotated(ancestor.annotations[name], ancestor.module, None, ancestor)
            for attribute, index, annotation, _ in ancestor.facts.self_attributes:
                if attribute == name and annotation is not None:
                    function = ancestor.module.function(index)
                    return self._program.types.annotated(annotation, ancestor.module, function, ancestor)
        return None

    def _library_member(self, cls: LibraryClass, name: str, receiver: Value) -> Value | None:
        member = library.member(cls.qualified, name)
        if member is None:
            made = correction(cls.qualified).results.get(f"{cls.qualified}.{name}")
            if made is not None:
                return FunctionValue(LibraryFunction(f"{cls.qualified}.{name}", ("", made, {}), cls), receiver)
            return _told_in_brackets(self._program, cls, name, receiver)
        if member.kind == "attribute":
            return self._program.types.written(member.type)
        function = LibraryFunction(member.name, member.sig, cls)
        bound = FunctionValue(function, receiver)
        if "p" in function.flags:
            return self._program.calls.property(bound)
        return bound

    def children(self, cls: Class) -> list[Class]:
        """The classes of the project that derive from `cls`, directly or not, in the order of files.

        They are looked for by the names of their bases, so that not every class of a project has to be understood.
        """
        if cls not in self._children:
            by_class: dict[Class, None] = {}
            names, waiting = {cls.name}, [cls.name]
            while waiting:
                name = waiting.pop()
                new = set(self._program.index.other_names(name))
                for candidate in self._program.index.classes_based_on(name):
                    if candidate not in by_class and cls in self.order(candidate)[1:]:
                        by_class[candidate] = None
                        new.add(candidate.name)
                waiting += new - names
                names |= new
            places = self._program.places
            self._children[cls] = sorted(by_class, key=lambda one: (places[one.module.path], one.index))
        return self._children[cls]


def _says_what_it_holds(declared: Value | None) -> bool:
    """Whether a dict is declared to hold objects of known classes."""
    if not isinstance(declared, Builtin) or not declared.args:
        return False
    return all(isinstance(member, Instance | Builtin) for member in members_of(declared.args[-1]))


def _sets_itself(cls: Class, name: str) -> bool:
    """Whether a method of `cls` gives an object an attribute of that name."""
    return any(attribute == name for attribute, *_ in cls.facts.self_attributes)


def _sets_methods(decorator: Function) -> bool:
    """Whether a function, or one inside it, goes through the attributes of something and sets them anew.

    One that sets `f"{name}_sync"` adds methods, and leaves those that are there.
    """
    inside = [f for f in decorator.module.facts.functions if f.qualname.startswith(f"{decorator.qualname}.")]
    return any(
        "setattr" in facts.calls and _sets_what_it_loops_over(body_of(facts), ())
        for facts in (decorator.facts, *inside)
    )


def _sets_what_it_loops_over(nodes: Iterable[Node], targets: tuple[Node, ...]) -> bool:
    for node in nodes:
        inside = targets
        if node[KIND] == "for":
            inside = (
                *targets,
                *(node[FOR_TARGET][ITEMS] if node[FOR_TARGET][KIND] in {"tuple", "list"} else (node[FOR_TARGET],)),
            )
        if (
            node[KIND] == "call"
            and node[CALL_FUNC] == ("name", "setattr")
            and len(node[CALL_ARGS]) > 1
            and node[CALL_ARGS][1] in inside
        ):
            return True
        if _sets_what_it_loops_over(children(node), inside):
            return True
    return False


def _is_a_namesake(cls: Class, node: Node) -> bool:
    """`asyncio.Protocol`, and the `Protocol` of a project's own, are no protocols of types."""
    if node[KIND] == "attr":
        return bool(node[ATTR_BASE] == ("name", "asyncio"))
    homes = [
        imported.module.partition(".")[0] for imported in cls.module.imports_of(node[1]) if imported.name is not None
    ]
    if homes:
        return not any(home in _OF_TYPING for home in homes)
    return any(isinstance(binding, Class) and binding is not cls for binding in cls.module.bindings.get(node[1], ()))


_MISSING = object()
_FIELDS = frozenset({"field", "Field", "ib", "attrib", "PrivateAttr"})
# Bases that add no members: what is not found in them is not there.
_SHAPELESS = frozenset({"object", "Generic", "Protocol", "ABC", "NamedTuple", "TypedDict"})


def is_protocol(cls: Class) -> bool:
    """Whether the class says of itself that it is one."""
    return says_protocol(cls.facts)


def says_protocol(facts: ClassFacts) -> bool:
    """The same, of its facts alone."""
    return any(last_name(base[INDEX_BASE] if base[KIND] == "index" else base) == "Protocol" for base in facts.bases)


def _told_in_brackets(program: Inference, cls: LibraryClass, name: str, receiver: Value) -> Value | None:
    """What `receiver.name` is, if `cls`, its class or a base of it, leaves that to what stands in its brackets."""
    place = correction(cls.qualified).type_arguments.get(f"{cls.qualified}.{name}")
    if place is None or not isinstance(receiver, Instance):
        return None
    if isinstance(receiver.cls, LibraryClass):
        return receiver.args[place] if place < len(receiver.args) else None
    owners = [ancestor for ancestor in program.classes.order(receiver.cls) if isinstance(ancestor, Class)]
    for owner, base in [(cls_, base) for cls_ in owners for base in cls_.facts.bases if base[KIND] == "index"]:
        value = program.static(owner.module).value(base[1])
        declared = value.cls if isinstance(value, ClassObject) else None
        if isinstance(declared, LibraryClass) and cls.qualified in library.lineage(declared.qualified):
            items = base[2][ITEMS] if base[2][KIND] == "tuple" else (base[2],)
            return program.types.annotated(items[place], owner.module) if place < len(items) else None
    return None
