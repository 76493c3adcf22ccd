"""Misjudged callable.

What it finds: `iscoroutinefunction(x)` where `x` is something it says False of although calling it gives a coroutine: an
object with an async `__call__`, a lambda or a sync function that returns a coroutine, an async function behind a sync
wrapper. Also such a thing given to a function of the project that asks this of its parameter, and nothing else.
Why it matters: the code takes the branch for sync functions, calls it, and drops the coroutine: the work never happens.
How to repair: call it and ask what came back: `inspect.isawaitable(result)`; or `troth.bridge.color_of(x)`.
How sure the fix is: none is offered; the branch that follows has to change too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, KIND, NAME_ID
from troth.analysis.findings import Finding, Reason
from troth.analysis.incremental.project_queries import question
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.queries.call_target import called_body
from troth.analysis.semantics.queries.callback_colors import arguments_of, calling_makes_a_coroutine, definition_of
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.resolve.name_index import called_in
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import FunctionValue, Instance, Lambda

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.values import Value

CASES = [
    Case(
        "a callable object",
        bad="import inspect\nclass Handler:\n    async def __call__(self): ...\ndef is_async(handler: Handler):\n    return inspect.iscoroutinefunction(handler)  # here\n",
    ),
    Case(
        "a sync function that hands a coroutine on",
        bad="import asyncio\nasync def load(): ...\ndef start():\n    return load()\ndef main():\n    if asyncio.iscoroutinefunction(start):  # here\n        return 1\n",
    ),
    Case(
        "behind a sync wrapper",
        bad="import functools, inspect\ndef logged(f):\n    @functools.wraps(f)\n    def wrapper(*a):\n        print(a)\n        return f(*a)\n    return wrapper\n"
        "@logged\nasync def load(): ...\ndef main():\n    return inspect.iscoroutinefunction(load)  # here\n",
    ),
    Case(
        "given to somebody who asks",
        bad="import inspect\nasync def call(f):\n    if inspect.iscoroutinefunction(f):\n        return await f()\n    return f()\nclass Handler:\n    async def __call__(self): ...\nasync def main(handler: Handler):\n    await call(handler)  # here\n",
    ),
    Case(
        "given to somebody who asks twice",
        good="import inspect\nasync def call(f):\n    if inspect.iscoroutinefunction(f):\n        return await f()\n    r = f()\n    if inspect.isawaitable(r):\n        return await r\n    return r\nclass Handler:\n    async def __call__(self): ...\nasync def main(handler: Handler):\n    await call(handler)\n",
    ),
    Case(
        "behind a decorator that hands it back",
        good="import inspect\nkept = []\ndef register(f):\n    kept.append(f)\n    return f\n@register\nasync def load(): ...\ndef main():\n    return inspect.iscoroutinefunction(load)\n",
    ),
    Case(
        "an async function",
        good="import inspect\nasync def load(): ...\ndef main():\n    return inspect.iscoroutinefunction(load)\n",
    ),
    Case(
        "its `__call__`",
        good="import inspect\nclass Handler:\n    async def __call__(self): ...\ndef is_async(handler: Handler):\n    return inspect.iscoroutinefunction(handler.__call__)\n",
    ),
    Case(
        "what a protocol asks for",
        good="import inspect\nfrom typing import Protocol\nclass Handler(Protocol):\n    async def __call__(self): ...\ndef is_async(handler: Handler):\n    return inspect.iscoroutinefunction(handler)\n",
    ),
    Case("anything", good="import inspect\ndef main(f):\n    return inspect.iscoroutinefunction(f)\n"),
    Case(
        "a sync function",
        good="import inspect\ndef load():\n    return 1\ndef main():\n    return inspect.iscoroutinefunction(load)\n",
    ),
]

_ASKING = re.compile(r"(?i)isawaitable|iscoroutine$|maybe|signature|unwrap|gather|ensure_future|create_task|__call__")
_QUESTIONS = frozenset(
    {"asyncio.iscoroutinefunction", "asyncio.coroutines.iscoroutinefunction", "inspect.iscoroutinefunction"}
)


@rule("TR409", "misjudged-callable", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Questions that get the wrong answer."""
    for caller in program.calling.asked_naming({"iscoroutinefunction"}):
        for call in _questions(program, caller):
            value = call.given[0][1]
            judgement = _misjudged(program, value)
            if judgement:
                message = f"`{call.text}(…)` says False of {judgement}, although calling it gives a coroutine"
                yield tell_at(
                    program, "TR409", "misjudged-callable", caller, call.at, message, sure=False,
                    reasons=(_reason(value, caller),), subject=call.text,
                )  # fmt: skip
    names = program.names_found("functions that ask for a color")
    mine = {name for name in program.calling.names_asked() if name in names}
    if mine:
        yield from _given(program, mine)


def _questions(program: Program, caller: Function) -> Iterator[Call]:
    """The calls of a function that ask for a color and do not know of objects that can be called."""
    if any("__call__" in callee for callee in caller.facts.calls) or _is_test(caller):
        return
    for call in program.calling.of(caller):
        if call.given and any(name in _QUESTIONS for name in names_of(call.callee)):
            if "__call__" in _text(program, caller):
                return
            yield call


def _asking(program: Program, function: Function) -> Call | None:
    """The call by which a function asks for the color of a parameter, if it asks for nothing else."""
    answers: MutableMapping[Function, Call | None] = program.answers_to("asking for a color")
    if function not in answers:
        answers[function] = None if _asks_again(function) else _about_parameter(program, function)
    return answers[function]


def _about_parameter(program: Program, function: Function) -> Call | None:
    if "iscoroutinefunction" not in called_in(function.facts):
        return None
    for call in _questions(program, function):
        if call.node[2] and call.node[2][0][KIND] == "name" and call.node[2][0][NAME_ID] in function.params:
            return call
    return None


@question("functions that ask for a color")
def _names_asking(program: Program) -> set[str]:
    askers = program.calling.functions_naming({"iscoroutinefunction"})
    return {function.name for function in askers if _asking(program, function) is not None}


def _asks_again(function: Function) -> bool:
    """Whether it looks at what comes back as well, or asks in a second way."""
    calls = (*function.facts.calls, *function.facts.awaited)
    return any(_ASKING.search(callee) for callee in calls) or function.name.startswith(("is_", "_is_"))


def _given(program: Program, names: set[str]) -> Iterator[Finding]:
    """What is given to a parameter that is asked, and then called."""
    for caller in program.calling.asked_naming(names):
        if _is_test(caller) or not (program.has_walked(caller) or _may_be_asked(program, caller, names)):
            continue
        for call in program.calling.of(caller):
            target = called_body(program, call.callee) if call.callee is not None else None
            question = _asking(program, target[0]) if target is not None else None
            if target is None or question is None:
                continue
            function, shift = target
            parameter = question.node[2][0][1]
            if parameter not in function.facts.calls:
                continue
            places = function.facts.positional
            for slot, _, value in arguments_of(call):
                position = int(slot) + shift if slot.isdigit() else -1
                name = places[position] if 0 <= position < len(places) else slot
                judgement = _misjudged(program, value) if name == parameter else ""
                if judgement:
                    message = f"`{function.qualname}` asks `{question.text}` of {judgement}: the answer is False, so its coroutine is never awaited"
                    reasons = (
                        _reason(value, caller),
                        Reason("the question is asked here", function.module.path, question.at[0]),
                    )
                    yield tell_at(
                        program, "TR409", "misjudged-callable", caller, call.at, message, sure=False, reasons=reasons,
                        subject=call.text,
                    )  # fmt: skip


def _may_be_asked(program: Program, caller: Function, names: set[str]) -> bool:
    """Whether one of its callees of these last names asks for the color of what it is given, as far as a glance tells."""
    for callee in (*caller.facts.calls, *caller.facts.awaited):
        text = callee.rpartition(" ")[2]
        if text.rpartition(".")[2] in names:
            for member in program.glance.callees(caller, text) or (None,):
                target = called_body(program, member)
                if member is None or (target is not None and _asking(program, target[0]) is not None):
                    return True
    return False


def _is_test(function: Function) -> bool:
    return "test" in function.module.path


def _text(program: Program, function: Function) -> str:
    return program.text(function.module.path).cut(*function.facts.at).replace("async def __call__", "")


def _misjudged(program: Program, value: Value | None) -> str:
    """What it is, if the question gets the wrong answer; "" if not."""
    if not calling_makes_a_coroutine(program, value):
        return ""
    if isinstance(value, Instance):
        if isinstance(value.cls, Class) and is_protocol(value.cls):
            return ""  # a coroutine function is one of these too
        return f"an object of `{value.cls.name}`"
    if isinstance(value, Lambda):
        return "a lambda"
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        function = value.function
        if not function.is_async:
            return "" if function.facts.decorators else f"`{function.name}`, a sync function that returns a coroutine"
        if any(_wraps_plainly(program, function, decorator) for decorator in function.facts.decorators):
            return f"`{function.name}`, which stands behind a sync wrapper"
    return ""


def _wraps_plainly(program: Program, function: Function, decorator: Node) -> bool:
    """Whether a decorator of the project puts a sync function in the place of the async one."""
    value = program.static(function.module, function.parent).value(
        decorator[CALL_FUNC] if decorator[KIND] == "call" else decorator
    )
    definition = definition_of(value)
    if definition is None or definition.is_async:
        return False
    for _ in range(2 if decorator[KIND] == "call" else 1):  # `@retry(3)`: what it returns is the decorator
        names = [node[NAME_ID] for node in returned(definition.body()) if node[KIND] == "name"]
        inner = [binding for name in names for binding in definition.module.inner(definition.index).get(name, ())]
        if len(inner) != 1 or not isinstance(inner[0], Function):
            return False
        definition = inner[0]
    if definition.is_async or definition.is_generator:
        return False
    return "markcoroutinefunction" not in program.text(definition.module.path).value


def _reason(value: Value | None, caller: Function) -> Reason:
    if isinstance(value, Instance):
        return Reason(
            f"`{value.cls.name}.__call__` is `async def`, which the question does not look at",
            *getattr(value.cls, "place", caller.place),
        )
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        how = (
            "is `async def`, and a decorator hides it"
            if value.function.is_async
            else "is `def` and returns a coroutine"
        )
        return Reason(f"`{value.function.qualname}` {how}", *value.function.place)
    return Reason("the lambda returns a coroutine", *caller.place)
