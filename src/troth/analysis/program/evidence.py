"""Knows what other places of the project say about a callee whose type is not known.

Two kinds of witnesses speak: definitions (every function of that name in the project is `async def`, and the name is
not one that objects of libraries commonly have) and sibling sites (the same callee, as written, is awaited elsewhere and
hardly ever used without). Both make a finding likely, never certain; where they disagree, nothing is said.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.program.calls import callee_text
from troth.analysis.program.values import Coroutine, Value

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.program.entities import Function
    from troth.analysis.program.evaluate import Evaluator
    from troth.analysis.program.link import Program
    from troth.analysis.program.sites import Site

__all__ = ["Evidence"]

# Names that objects of libraries commonly have: a definition in the project says nothing about somebody else's.
GENERIC = frozenset(
    """
    abort accept acquire add add_done_callback all any append apply apply_async as_dict authenticate begin bind build call
    cancel check clean cleanup clear clone close commit configure connect consume copy count create cursor data decode
    default delete describe destroy disconnect dispatch do download dump dumps emit empty encode end enqueue enter
    error eval evaluate event exception exec execute executemany exists exit extend fetch fetchall fetchmany fetchone fileno
    filter find find_all find_one first flush format forward from_dict generate get get_all get_by_id get_or_create getall
    group handle head healthcheck id import_module index info init initialize insert instance invoke is_alive is_closed
    is_connected is_set items iter join json keys kill last len limit list listen load loads lock log login logout lookup
    main map match merge method model move name new next notify notify_all on open options order_by parse patch pause ping
    poll pop post prepare process publish pull push put put_nowait query quit raise_for_status read readline
    receive recv recv_json refresh register release reload remove rename render replace report request reset resolve
    response result resume retrieve rollback run save scalar scalars scan schedule search select send send_json sendall
    set setup show shutdown shutdown_default_executor sign sleep sort spawn split start state status step stop stream
    submit subscribe succeed sync tell terminate test text title to_dict touch trace train transaction transform trigger
    truncate type unlink unlock unregister unsubscribe update upload use validate value values verify wait wait_for watch
    where write writelines
    """.split()
)


class Evidence:
    """Counts witnesses over the whole project."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._async: Counter[str] = Counter()
        self._methods: Counter[str] = Counter()  # of the async ones, those that a class has
        self._plain: Counter[str] = Counter()
        self._places: dict[str, tuple[str, int]] = {}
        self._awaited: Counter[str] = Counter()
        self._awaited_names: Counter[str] = Counter()
        self._bare: Counter[str] = Counter()
        self._awaited_places: dict[str, tuple[str, int]] = {}
        self.awaited_twice: set[str] = set()  # functions whose result is awaited as well

    def count(self, path: str, functions: tuple[tuple[object, ...], ...]) -> None:
        """Take in what one file says."""
        for f in functions:
            name, flags, at, calls, awaited = f[0], f[4], f[5], f[9], f[10]
            if flags & 1:  # type: ignore[operator]
                self._async[name] += 1  # type: ignore[index]
                if f[3] != -1:
                    self._methods[name] += 1  # type: ignore[index]
                self._places.setdefault(name, (path, at[0]))  # type: ignore[arg-type, index]
            else:
                self._plain[name] += 1  # type: ignore[index]
            for callee in awaited:  # type: ignore[attr-defined]
                if callee.startswith("await "):
                    self.awaited_twice.add(callee.rpartition(".")[2].rpartition(" ")[2])
                    continue
                key = _tail(callee)
                self._awaited[key] += 1
                self._awaited_names[key.rpartition(".")[2]] += 1
                self._awaited_places.setdefault(key, (path, at[0]))  # type: ignore[index]
            for callee in calls:  # type: ignore[attr-defined]
                self._bare[_tail(callee)] += 1

    def colors(self, name: str) -> tuple[int, int]:
        """How many definitions of that name are async, and how many are not."""
        return self._async[name], self._plain[name]

    def async_names(self) -> set[str]:
        """Names with at least one async definition, and names that are awaited somewhere."""
        return set(self._async) | {key.rpartition(".")[2] for key in self._awaited}

    def call(self, node: Node, scope: Evaluator, external: str = "") -> Value | None:
        """A promise, if the witnesses say that calling this unknown callee gives one.

        Of something that comes from a library (`external`) the definitions of the project say nothing.
        """
        callee = node[1]
        if callee[0] not in {"attr", "name"} or scope.function is None:
            return None
        text = callee_text(callee)
        reason = self._by_name(callee[2]) if callee[0] == "attr" and not external else None
        siblings = reason is None
        if reason is None and scope.function.is_async:
            reason = self._by_siblings(text)
        if reason is None or _asks_for_color(scope.function):
            return None
        site = scope.site(None, node[-1], text, "coroutine", lambda: (reason,), sure=False)
        if site is not None:
            site.by_siblings = siblings
        return Coroutine(site, lambda: None)

    def is_always_awaited(self, site: Site) -> bool:
        """Whether a result rather than a promise is expected at `site`.

        In `async def` the callee being known is enough: whoever wants the promise itself names it so. In a plain
        function, which cannot await, another site has to show that the callee is awaited.
        """
        if site.target is None:
            return False
        if site.function.is_async:
            return True
        name = site.callee.rpartition(".")[2]
        return self._awaited_names[name] > 0

    def _by_name(self, name: str) -> Reason | None:
        if name in GENERIC or name.startswith("__"):
            return None
        count, plain = self.colors(name)
        if not self._methods[name] or plain:
            return None
        path, line = self._places[name]
        which = "the only definition" if count == 1 else f"all {count} definitions"
        verb = "is" if count == 1 else "are"
        return Reason(f"{which} of `{name}` in this project {verb} `async def`", path, line)

    def _by_siblings(self, text: str) -> Reason | None:
        key = _tail(text)
        awaited, bare = self._awaited[key], self._bare[key]
        if "…" in text or "?" in key or awaited < 2 or (bare - 1) * 4 > awaited:
            return None
        path, line = self._awaited_places[key]
        return Reason(f"`{key}(…)` is awaited in {awaited} other functions", path, line)


def _asks_for_color(function: Function) -> bool:
    """Whether the function itself looks at the color of what it calls; then a plain call is no accident."""
    return any(callee.rpartition(".")[2] in _COLOR_QUESTIONS for callee in function.facts.calls)


_COLOR_QUESTIONS = frozenset(
    "iscoroutinefunction isawaitable iscoroutine isasyncgenfunction isasyncgen is_coroutine is_async is_awaitable "
    "is_coroutine_function is_async_callable maybe_await is_coroutine_callable".split()
)


def _tail(callee: str) -> str:
    """The last two names of a callee: the receiver as it is called, and the method."""
    parts = callee.split(".")
    return ".".join(parts[-2:])
