"""Find the calls that hold up the loop, and tell of each: what the rules about blocking calls share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.incremental.project_queries import question
from troth.analysis.knowledge.semantics import Blocking, semantics
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import span
from troth.analysis.rules._fixes.imports import imported, is_imported, may_use_asyncio, waits_otherwise
from troth.analysis.rules._fixes.intent import is_about_blocking
from troth.analysis.rules._syntax_position import standing
from troth.analysis.rules.loop_misuse._nonblocking import is_perhaps_done, takes_no_time
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.call_chains import Chains, Link, chains_of
from troth.analysis.semantics.resolve.library import LibraryClass

if TYPE_CHECKING:
    from troth.analysis.facts.model import At
    from troth.analysis.findings import Safety
    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.symbols import Function

__all__ = ["told_down_a_chain", "told_in_place"]

_DIRECT = frozenset({"sleep", "network", "subprocess", "lock", "queue", "future", "database", "file", "person"})
_FOR_A_THREAD = frozenset({"network", "subprocess", "file"})
_DOWN_A_CHAIN = frozenset({"sleep", "network", "subprocess"})
_FILES = ("read_text", "write_text", "read_bytes", "write_bytes")  # a whole file at once; `open` and `exists` are quick


_BLOCKING = re.compile(r"[Bb]locking|(?<![a-zA-Z])sync(?:_|\b)|(?<![a-z])Sync(?=[A-Z_]|\b)|_sync(?:_|\b)")
_WAITING = frozenset({"wait", "block", "blocking"})
_NOT_WAITING = re.compile(r"\b(?:wait|block|blocking)\s*=\s*False\b")
_LONGEST = 60  # letters of a callee that a message can bear
_ASYNC_WORD = re.compile(r"async_|_async")
_FORKING = frozenset({"fork", "forkpty"})
_RUNNING = frozenset({"run_until_complete", "run_forever", "run"})


def told_in_place(program: Program, code: str, name: str, *, brief: bool) -> Iterator[Finding]:
    """The calls in async functions themselves; `brief` are those that mostly wait for a few milliseconds."""
    for call, blocking, callers in _told_once(program):
        is_start = _starts_a_program(call)
        if (is_start or blocking.waits_for == "file") is not brief:
            continue
        phrase = f"waits for {_words(blocking)} and blocks the event loop"
        if is_start:
            phrase = "blocks the event loop while the program starts, and again when its end is awaited"
        if _makes_a_client(call):
            phrase = "makes a client whose every call waits for the network and blocks the event loop"
        finding = _told(program, call, blocking, f"`{_shown(program, call)}(…)` {phrase}", (), callers)
        yield finding._replace(code=code, rule=name)


def told_down_a_chain(program: Program) -> Iterator[Finding]:
    """The calls in async functions that lead to one which blocks; all that lead to one have one cause."""
    reported: set[tuple[Function, Function, At]] = set()
    for link in _chained(program).indirect():
        end = _kind(program, link.end)
        assert end is not None
        way = (link.call.caller, link.end.caller, link.end.at)
        if way in reported or _is_told_not_to_wait(program, link) or _is_of_a_blocking_flavor(link.call.caller):
            continue  # one that blocks there is repaired for all
        if is_test(link.call.caller.module.path) and (_is_cut_off(program, link) or _is_one_of_two(link.call)):
            continue
        reported.add(way)
        message = f"`{link.call.text}(…)` leads to `{link.end.text}(…)`, which waits for {_words(end)} and blocks the event loop"
        finding = _told(program, link.call, end, message, (link.rest or link).reasons())
        path, at = link.end.caller.module.path, link.end.at
        yield finding._replace(cause=f"{path}:{at[0]}:{at[1]}")


def _told_once(program: Program) -> Iterator[tuple[Call, Blocking, list[Call]]]:
    """The calls that are told, what they wait for, and in a file of tests the others for which each of them stands."""
    connections: set[tuple[Function, str]] = set()
    in_tests: dict[tuple[str, str], list[Call]] = {}
    findings: list[tuple[Call, Blocking, list[Call]]] = []
    for call in _direct(program).direct():
        if (
            call.is_awaited
            or _is_of_a_blocking_flavor(call.caller)
            or _has_a_thread(program, call.caller)
            or _forks(call.caller)
            or _is_entered_async(call)
        ):
            continue
        kind = _kind(program, call)
        assert kind is not None
        if kind.waits_for == "database":
            connection = (call.caller, call.text.rpartition(".")[0])
            if connection in connections:
                continue  # an async connection repairs all calls of it
            connections.add(connection)
        callers: list[Call] = []
        if is_test(call.caller.module.path):
            if _is_expected_to_fail(program, call):
                continue
            place = (call.caller.module.path, call.text)
            if place in in_tests:
                in_tests[place].append(call)
                continue
            in_tests[place] = callers
        findings.append((call, kind, callers))
    yield from findings


def _is_of_a_blocking_flavor(function: Function) -> bool:
    """`BlockingConnection`, `sync_client.py`: coroutines that somebody drives to their end without a loop."""
    owner = function.class_around
    names = (function.module.path.rpartition("/")[2], owner.name if owner is not None else "", function.name)
    return any(_BLOCKING.search(name) for name in names)


def _is_one_of_two(call: Call) -> bool:
    """`await client.async_get(1) if waits else client.get(1)`: a test of both sides, where nobody else is waiting."""
    base, _, name = call.text.rpartition(".")
    return any(
        callee.startswith(f"{base}.") and _ASYNC_WORD.sub("", callee.rpartition(".")[2]) in {name, f"a{name}"}
        for callee in call.caller.facts.awaited
    )


def _has_a_thread(program: Program, function: Function) -> bool:
    """Whether the function belongs to a thread that runs a loop of its own: nobody else is on it."""
    owner = function.class_around
    if owner is None or not owner.facts.bases:
        return False
    order = program.classes.order(owner)
    if not any(isinstance(ancestor, LibraryClass) and ancestor.qualified == "threading.Thread" for ancestor in order):
        return False
    methods = (owner.module.function(index).facts for indexes in owner.methods.values() for index in indexes)
    return any(callee.rpartition(".")[2] in _RUNNING for facts in methods for callee in facts.calls)


def _forks(function: Function) -> bool:
    """In the child of a fork no loop turns that could be held up, nor any thread that it could be handed to."""
    return any(callee.rpartition(".")[2] in _FORKING for callee in function.facts.calls)


def _is_entered_async(call: Call) -> bool:
    """`async with client.stream(…)`: whatever the table knows, the author has a client that is entered so."""
    if not any(callee.startswith("with ") for callee in call.caller.facts.awaited):
        return False
    entered = (node for node in of_kind(call.caller.body(), "with") if node[1])
    return any(item[0] == call.node for node in entered for item in node[2])


def _is_told_not_to_wait(program: Program, link: Link) -> bool:
    """`self._poll(blocking=False)` on the way."""
    current: Link | None = link
    while current is not None:
        source = program.text(current.call.caller.module.path).cut(*current.call.at)
        if any(keyword in _WAITING for keyword, _ in current.call.node[3]) and _NOT_WAITING.search(source):
            return True
        current = current.rest
    return False


def _is_expected_to_fail(program: Program, call: Call) -> bool:
    """`with pytest.raises(…)` around the call: it is there to fail before it waits for anybody."""
    if not _may_expect_an_error(program, call.caller):
        return False
    position = standing(program, call.caller.module.path, call.at)
    return position is not None and any(
        isinstance(node, ast.With | ast.AsyncWith) and any("aises" in ast.unparse(item) for item in node.items)
        for node in position.around
    )


def _may_expect_an_error(program: Program, caller: Function) -> bool:
    """Whether `raises` stands anywhere around; to see where, the whole file has to be parsed."""
    outermost = caller
    while outermost.parent is not None:
        outermost = outermost.parent
    module = outermost.module
    if not outermost.index or module.own_function(0).speaks_of(("with",)):  # a `with` at module level
        return True
    return "aises" in program.text(module.path).cut(*outermost.facts.at)


def _is_cut_off(program: Program, link: Link) -> bool:
    """Whether a test has put something else in the place of a function on the way."""
    caller = link.call.caller
    source = program.text(caller.module.path).cut(*caller.facts.at)
    current = link.rest
    while current is not None:
        name = re.escape(current.call.text.rpartition(".")[2])
        if re.search(rf"""\.{name}\s*=[^=]|["'.]{name}["']""", source):
            return True
        current = current.rest
    return False


def _kind(program: Program, call: Call) -> Blocking | None:
    """What a call waits for while it holds the loop up; None where it holds up nothing."""
    answers: MutableMapping[tuple[Function, At], Blocking | None] = program.answers_to("kind of blocking")
    key = (call.caller, call.at)
    if key not in answers:
        answers[key] = _look(program, call)
    return answers[key]


def _look(program: Program, call: Call) -> Blocking | None:
    by_name = semantics().blocking
    names = set(names_of(call.callee))
    blocking = next((by_name[name] for name in names if name in by_name), None) or _also(program, call)
    if blocking is None or blocking.waits_for not in _DIRECT:
        return None
    if blocking.waits_for == "database" and is_test(call.caller.module.path):
        return None  # a test that makes its own small database has nobody waiting meanwhile
    if blocking.waits_for == "person" and (_runs_alone(program, call.caller) or is_test(call.caller.module.path)):
        return None
    if blocking.waits_for == "file" and (
        call.text.rpartition(".")[2] not in _FILES or _runs_alone(program, call.caller)
    ):
        return None
    if blocking.waits_for == "future" and is_perhaps_done(call):
        return None
    return None if takes_no_time(program, call, blocking) else blocking


def _direct(program: Program) -> Chains:
    names = {*semantics().blocking, "subprocess.Popen"}

    def make() -> Chains:
        return Chains(
            program,
            "blocking",
            names,
            lambda call: _kind(program, call) is not None,
            stops=lambda _: True,
            on_any_receiver=(*_FILES, "input"),
        )

    return chains_of(program, "blocking", make)


def _chained(program: Program) -> Chains:
    blocking = semantics().blocking

    def make() -> Chains:
        return Chains(
            program,
            "blocking at a distance",
            [name for name in blocking if _reaches(blocking[name])],
            lambda call: (
                not call.text.endswith("Popen") and not _makes_a_client(call) and _reaches(_kind(program, call))
            ),
            stops=_is_for_a_thread,
            up_to=("return",),
        )

    return chains_of(program, "blocking at a distance", make)


@question("reaching blocking at a distance")
def _reaching(program: Program) -> set[str]:
    return _chained(program).reach()


def _reaches(found: Blocking | None) -> bool:
    return found is not None and found.waits_for in _DOWN_A_CHAIN


def _told(
    program: Program, call: Call, found: Blocking, message: str, way: tuple[Reason, ...], others: Sequence[Call] = ()
) -> Finding:
    caller = call.caller
    reasons = (Reason(f"`{caller.qualname}` is `async def`, so the loop waits with it", *caller.place), *way)
    # Whether a socket blocks and whether a host has to be looked up cannot be seen at the call.
    is_plain = not any(name.startswith("socket.") for name in set(names_of(call.callee)))
    is_plain = is_plain and not _starts_a_program(call) and not _makes_a_client(call)
    sure = not way and is_plain and found.waits_for in {"sleep", "network", "subprocess"}
    speaks_asyncio = not (found.twin.startswith("asyncio.") and waits_otherwise(caller.module))
    if found.twin and not way and speaks_asyncio:
        twin = f"`{found.twin.replace(' or ', '` or `')}`" if "." in found.twin else found.twin
        reasons = (*reasons, Reason(f"in async code, use {twin}"))
    fix = None if way else _fix_of_all(program, [call, *others])
    return Finding(
        "TR602", "blocking-call", span(program, caller, call.at), message, "certain" if sure else "likely",
        reasons, fix, caller.qualname, call.text,
        # What is reached down a chain of calls is seen by no other linter: its comment means something else there.
        kind="" if way else found.waits_for,
    )  # fmt: skip


def _shown(program: Program, call: Call) -> str:
    """The callee as it is written, where it is more than names: `(folder / "a.json").read_text`."""
    callee = call.node[1]
    if "…" not in call.text or callee[0] != "attr":
        return call.text
    written = program.text(call.caller.module.path).cut(*callee[3])
    return written if "\n" not in written and len(written) <= _LONGEST else call.text


def _starts_a_program(call: Call) -> bool:
    return "subprocess.Popen" in set(names_of(call.callee))


def _makes_a_client(call: Call) -> bool:
    """`boto3.client("s3")` asks nobody yet; its methods, which do, are made up at run time and cannot be known."""
    return any(name.startswith("boto3.") for name in set(names_of(call.callee)))


def _words(found: Blocking) -> str:
    return {
        "sleep": "time to pass",
        "network": "the network",
        "subprocess": "another program",
        "lock": "a lock",
        "queue": "a queue",
        "future": "the result of another thread",
        "database": "a database",
        "file": "a file",
        "person": "keyboard input",
    }[found.waits_for]


def _also(program: Program, call: Call) -> Blocking | None:
    """A program started, or a whole file read or written, by a path that nobody need know the type of."""
    if _starts_a_program(call):
        return Blocking("subprocess", "asyncio.create_subprocess_exec")
    name = call.text.rpartition(".")[2]
    if call.text == "input" and "builtins.input" in set(names_of(call.callee)):
        return Blocking("person", "asyncio.to_thread(input)")
    if name in {"result", "exception"} and call.callee is None and _is_of_a_pool(program, call):
        return Blocking("future", "asyncio.wrap_future")
    if name not in _FILES or call.is_awaited or "test" in call.caller.module.path or _has_async_paths(call.caller):
        return None
    is_path = any(path.startswith("pathlib.") for path in names_of(call.callee))
    if is_path or (call.callee is None and not any(program.counts.colors(name))):
        return Blocking("file", "await asyncio.to_thread(…)")
    return None


def _runs_alone(program: Program, function: Function) -> bool:
    """`asyncio.run(main())` in the file itself: a script, in which nobody waits while `main` reads a file."""
    called = rf"\brun\(\s*{re.escape(function.name)}\("
    return function.owner is None and re.search(called, program.text(function.module.path).value) is not None


def _is_of_a_pool(program: Program, call: Call) -> bool:
    """Whether a result is asked of what a pool of threads or processes gave for a job: `pool.submit(job).result()`."""
    future: Any = call.node[1][1] if call.node[1][0] == "attr" else ()
    if future[:1] == ("name",):
        values = [node[2] for node in of_kind(call.caller.body(), "assign") if node[1] == (future,)]
        future = values[0] if len(values) == 1 else ()
    if future[:1] != ("call",):
        return False
    maker = next((candidate for candidate in program.calling.of(call.caller) if candidate.at == future[-1]), None)
    names = () if maker is None else tuple(names_of(maker.callee))
    return any(name.startswith("concurrent.futures.") and name.endswith(".submit") for name in names)


def _has_async_paths(function: Function) -> bool:
    """Whether the file knows paths whose methods are awaited."""
    return not function.module.packages.isdisjoint({"anyio", "aiopath", "trio"})


def _is_for_a_thread(function: Function) -> bool:
    """Whether the name says that the function is meant to be run in a thread."""
    return any(word in function.name.lower() for word in ("sync", "blocking", "thread", "worker"))


_TO_THREAD = 9  # the minor version of Python 3 that brought `asyncio.to_thread`


def _fix_of_all(program: Program, calls: Sequence[Call]) -> Fix | None:
    """The fix of a call and of those that it stands for: one that is left would be told next."""
    fixes = [_fix(program, call, kind) for call in calls if (kind := _kind(program, call)) is not None]
    first = fixes[0] if fixes else None
    every = [fixe for fixe in fixes if fixe is not None]
    if first is None or len(every) < len(fixes):
        return None
    more = f"; likewise the {len(every) - 1} below it" if len(every) > 1 else ""
    edits = tuple(dict.fromkeys(edit for function in every for edit in function.edits))
    return Fix(f"{first.title}{more}", first.safety, edits)  # all call the same, so that all are as safe


def _fix(program: Program, call: Call, found: Blocking) -> Fix | None:
    """The async twin of a sleep, a thread for what waits for somebody else, both of the library the file waits with.

    Locks, database connections and what else belongs to its thread stay where they are.
    """
    position = standing(program, call.caller.module.path, call.at)
    if position is None or not isinstance(position.node, ast.Call):
        return None
    tree = position.around[-1]
    assert isinstance(tree, ast.Module)
    library = next(
        (module_name for module_name in ("asyncio", "anyio", "trio") if is_imported(tree, module_name)), None
    )
    if library is None and (not may_use_asyncio(program) or waits_otherwise(call.caller.module)):
        return None
    added = imported(position, library or "asyncio")
    library = library or "asyncio"
    _, callee = position.offsets(position.node.func)
    if added is None:
        return None
    if found.twin == "asyncio.sleep":
        renamed = Edit(position.path, position.start, callee, f"{library}.sleep")
        edits = position.awaited("await ", renamed)
        # Who knows both and blocks under a condition may hold up everything on purpose: a limit for all requests.
        is_perhaps_meant = "asyncio.sleep" in call.caller.facts.awaited and _is_under_a_condition(position)
        safety: Safety = "guess" if is_about_blocking(position) else "likely" if is_perhaps_meant else "sure"
        return Fix(f"await {library}.sleep instead", safety, (*added, *edits)) if edits is not None else None
    if found.waits_for not in _FOR_A_THREAD or position.text[callee : callee + 1] != "(":
        return None
    if library != "asyncio" and position.node.keywords:
        return None  # these threads take no keywords
    if library == "asyncio" and program.oldest_python < _TO_THREAD:
        return None
    thread = f"{library}.to_thread" if library == "asyncio" else f"{library}.to_thread.run_sync"
    has_arguments = position.node.args or position.node.keywords
    comma = "" if not has_arguments else "," if position.text[callee + 1].isspace() else ", "
    edits = position.awaited(f"await {thread}(", Edit(position.path, callee, callee + 1, comma))
    return Fix(f"run it in a thread: `await {thread}(…)`", "likely", (*added, *edits)) if edits is not None else None


def _is_under_a_condition(position: Standing) -> bool:
    """Whether the call stands under an `if` of the function around it."""
    for node in position.around:
        if node is position.function:
            return False
        if isinstance(node, ast.If):
            return True
    return False
