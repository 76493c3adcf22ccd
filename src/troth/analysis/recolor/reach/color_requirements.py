"""What asks for the color a target has: a base class of a library, a protocol of others, a decorator."""

from collections.abc import Collection
from fnmatch import fnmatchcase

from troth.analysis.facts.model import Node, body_of
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.recolor.reach.standard_classes import is_plain_in_standard_library
from troth.analysis.recolor.reach.wrapper import result_used
from troth.analysis.semantics import Program
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.color_requirements import is_harmless, is_protocol
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import External, FunctionValue

__all__ = ["required_by"]


def required_by(program: Program, function: Function, together: Collection[Function]) -> str | None:
    """Why `function` has to keep its color though all of `together` change; None if it need not."""
    for decorator in function.facts.decorators:
        if not is_harmless(program, function, decorator) and (why := _by_decorator(program, function, decorator)):
            return why
    owner = function.owner
    if owner is None:
        file = function.module.path.rpartition("/")[2]
        hooks = semantics().module_hooks
        is_hook = any(function.name in hook.names and any(fnmatchcase(file, f) for f in hook.files) for hook in hooks)
        return "is a hook of a framework, which asks for its color" if is_hook and function.parent is None else None
    for derived in (owner, *program.classes.children(owner)):
        if (base := _asking_base(program, derived, function)) is not None:
            return f"is required by its base class `{base}`" + (
                "" if derived is owner else f" in `{derived.name}` ({':'.join(map(str, derived.place))})"
            )
    for protocol in _protocols(program):
        methods = set(protocol.methods)
        if (
            function.name in methods
            and methods <= _all_methods(program, owner)
            and is_async_in(protocol, function.name) == function.is_async
        ):
            inside = protocol.module.function(protocol.methods[function.name][-1])
            if inside not in together:
                path, line = protocol.place
                return (
                    f"is required by the protocol `{protocol.name}` ({path}:{line}), which other classes fulfil too; "
                    f"recolor `{path}:{protocol.name}.{function.name}` to change all of them"
                )
    return None


def _asking_base(program: Program, cls: Class, function: Function) -> str | None:
    """The class of a library behind `cls` that asks for the color that the function has; None if there is none.

    A mixin meets such a class only in what derives from both.
    """
    for ancestor in program.classes.order(cls):
        if isinstance(ancestor, LibraryClass):
            hook = semantics().hook(ancestor.qualified, function.name)
            if hook == "either":
                return None  # the framework awaits what it gets, and calls nothing of the bases behind
            member = library.member(ancestor.qualified, function.name)
            if hook:
                return ancestor.qualified
            if member is not None:  # of the other color than the function, it asks for what the function becomes
                is_async = bool(member.sig) and "a" in member.sig[0]
                return ancestor.qualified if is_async == function.is_async or not member.sig else None
            if not function.is_async and is_plain_in_standard_library(ancestor.qualified, function.name):
                return ancestor.qualified
    return None


def is_async_in(cls: Class, name: str) -> bool:
    """Whether the method of that name in the class is async."""
    return cls.module.function(cls.methods[name][-1]).is_async


def _by_decorator(program: Program, function: Function, decorator: Node) -> str | None:
    node = decorator[1] if decorator[0] == "call" else decorator
    name = _dotted(node)
    decorated = program.effects.decorator(function, decorator)
    if not isinstance(decorated, FunctionValue):  # `@retry(3)`, or a decorator that a variable holds
        decorated = program.static(function.module, function.parent, function.owner).value(node)
    if isinstance(decorated, FunctionValue) and isinstance(decorated.function, Function):
        if function.is_async:
            return f"has the decorator `@{name}`, whose wrapper is async" if _makes_async(decorated.function) else None
        use = result_used(program, decorated.function)
        return None if use is None else f"has the decorator `@{name}`, which {use}"
    if isinstance(decorated, External) and decorated.path.startswith("pytest."):
        return None  # a mark that a variable holds: `slow = pytest.mark.slow`
    effects = {semantics().decorators.get(name, "") for name in names_of(decorated)}
    if "caches" in effects:
        return f"has the decorator `@{name}`, which keeps what it returns, and would keep a coroutine"
    if not function.is_async and effects & {"either", "keeps", "wants_async"}:
        return None  # plain, a framework runs it in a thread; async, on its loop
    if name.rpartition(".")[2] in {"overload", "property", "cached_property", "fixture", "setter"} or name.startswith(
        "pytest."
    ):
        return None
    return f"has the decorator `@{name}`, which may ask for its color"


def _makes_async(function: Function) -> bool:
    """Whether an async function is defined inside a decorator of the project."""
    inner = function.module.inner(function.index)
    return any(
        function.is_async for namesakes in inner.values() for function in namesakes if isinstance(function, Function)
    ) or any(
        _makes_async(function)
        for namesakes in inner.values()
        for function in namesakes
        if isinstance(function, Function) and body_of(function.facts)
    )


def _dotted(node: Node) -> str:
    if node[0] == "name":
        return str(node[1])
    return f"{_dotted(node[1])}.{node[2]}" if node[0] == "attr" else "…"


def _protocols(program: Program) -> list[Class]:
    classes = (module.cls(index) for module in program.own_modules() for index in range(len(module.facts.classes)))
    return [cls for cls in classes if cls.methods and is_protocol(cls)]


def _all_methods(program: Program, cls: Class) -> set[str]:
    return {name for base in program.classes.order(cls) if isinstance(base, Class) for name in base.methods}
