"""What `with` and `for` are given that only `async with`, `async for` or `await` can do something with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import KIND
from troth.analysis.facts.names import callee_text
from troth.analysis.findings import Reason
from troth.analysis.semantics.incident import LossIncident, Site
from troth.analysis.semantics.infer.evaluator import _at_of
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.values import (
    AsyncContext,
    Builtin,
    Coroutine,
    FunctionValue,
    Instance,
    Union,
    Value,
    members_of,
)
from troth.analysis.semantics.walk.narrowing import Narrowing

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.incident import AwaitableKind, IncidentKind

__all__ = ["PlainUse"]


class PlainUse(Narrowing):
    """A walk that looks at what is entered and looped over."""

    def entered_by(self, value: Value | None, node: Node, at: At, *, is_async: bool) -> None:
        """A `with` or an `async with` enters that."""
        expected = self._expects_error or self.expects_misuse()  # a test that the sync one is refused
        for member in members_of(value):
            if isinstance(value, Union):
                self.keep(member)
                continue
            if isinstance(member, Coroutine) and member.site is not None:
                if is_async:
                    self.misuse(member, "async with", _at_of(node))
                else:
                    self.misuse(member, "with", _at_of(node))
            elif isinstance(member, AsyncContext) and member.site is not None:
                if not is_async and not expected:
                    self.incidents[at, "plain with"] = LossIncident(
                        "plain with", member.site, at, sure=member.site.sure
                    )
                self.keep(member)
            elif isinstance(member, Instance) and not is_async and not expected:
                self._check_plain_with(member, node, at)
            elif isinstance(member, Builtin) and not is_async and not expected:
                self._check_given_context(member, node, at)
            else:
                self.keep(member)

    def _check_plain_with(self, member: Instance, node: Node, at: At) -> None:
        if isinstance(member.cls, LibraryClass) and (
            self.runs_by_itself(member.cls.qualified) or self._is_of_older_library(member.cls)
        ):
            return
        if self.program.classes.is_only_async(member.cls, "__aenter__"):
            self._taken_plainly("plain with", member, node, at)

    def _check_given_context(self, member: Builtin, node: Node, at: At) -> None:
        """`with client.stream(…)`: a library says that it gives an async context manager, and no other."""
        call = self.calls.get(node[4]) if node[KIND] == "call" and member.name == "async context" else None
        callee = None if call is None else call.callee
        function = callee.function if isinstance(callee, FunctionValue) else None
        if isinstance(callee, FunctionValue) and isinstance(function, LibraryFunction) and "m" in function.flags:
            target, func = function, callee
            if (
                self.runs_by_itself(target.qualname)
                or self.program.majors_behind(target.qualname.partition(".")[0]) > 0
            ):
                return
            text = callee_text(node[1])
            why = Reason(f"`{target.qualname}` gives an async context manager")
            sure = not (isinstance(func.receiver, Instance) and func.receiver.guess)
            site = Site(self.inside, at, f"{text}(…)", target, "context", sure, lambda: (why,))
            self.incidents[at, "plain with"] = LossIncident("plain with", site, at, sure=sure)

    def looped_over(self, value: Instance, node: Node, at: At) -> None:
        """A plain `for` loops over that."""
        classes = self.program.classes
        if self._expects_error or classes.has(value.cls, "__await__") is True:
            return  # what awaiting it gives may be looped over
        if isinstance(value.cls, LibraryClass) and self._is_of_older_library(value.cls):
            return
        if classes.is_only_async(value.cls, "__aiter__"):
            self._taken_plainly("plain for", value, node, at)

    def _is_of_older_library(self, cls: LibraryClass) -> bool:
        top, _, _ = cls.qualified.partition(".")
        return self.program.majors_behind(top) > 0

    def _taken_plainly(self, kind: IncidentKind, taken: Instance, node: Node, at: At) -> None:
        """`with` or `for` on an object that knows only `async with` or `async for`."""
        how = "__aenter__" if kind == "plain with" else "__aiter__"
        awaitable: AwaitableKind = "context" if kind == "plain with" else "iterable"
        site = Site(
            self.inside,
            at,
            callee_text(node),
            None,
            awaitable,
            not taken.guess,
            lambda: self.program.reasons.of_only_async(taken, how),
        )
        self.incidents[at, kind] = LossIncident(kind, site, at)
