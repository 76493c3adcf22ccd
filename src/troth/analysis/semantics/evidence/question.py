"""Put the question to witnesses and doubts: whether calling an unknown callee gives an awaitable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import AT, ATTR_BASE, ATTR_NAME, CALL_FUNC, KIND, NAME_ID
from troth.analysis.facts.names import callee_text
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.call_site_evidence import OF_NOBODY, is_telling
from troth.analysis.semantics.evidence.receiver_names import is_called_like_owner
from troth.analysis.semantics.incident import AwaitableKind
from troth.analysis.semantics.infer.classes import is_protocol
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import External, Instance

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["EvidenceCase", "Question", "Testimony", "is_carried", "is_of_unknown_base", "is_unlisted"]

_BEHIND = re.compile(r"\)(?:\.\w+){3,}$")  # two attributes at least, and the method
_CARRIED = re.compile(r"\)\.(?:\w+\.)*(?:obj|state|ctx|user_data|bot_data|chat_data|extensions)\.\w+\.")


class EvidenceCase(NamedTuple):
    """A program with one line that ends in `# lost`, which only this witness reports, or only this doubt silences."""

    name: str
    program: str


class Testimony(NamedTuple):
    """What one witness says for it."""

    reason: Reason
    awaitable: AwaitableKind = "coroutine"
    is_shape: bool = False  # what the call looks like says so, whatever the callee is
    is_proof: bool = False  # no doubt is asked
    sure: bool = False
    by_sites: bool = False  # other calls say so, and no definition
    firm: bool = False  # of these, so many that the finding stands where results are used as well


class Question:
    """One call of an unknown callee, in the function around it."""

    def __init__(self, program: Inference, node: Node, scope: Evaluator, function: Function, external: str) -> None:
        self.program = program
        self.node = node
        self.callee: Node = node[CALL_FUNC]
        self.scope = scope
        self.function = function
        self.external = external
        self.text = callee_text(self.callee)
        self.is_method = self.callee[KIND] == "attr"
        self.name: str = self.callee[ATTR_NAME] if self.is_method else self.callee[NAME_ID]
        self._origin: str | None = None

    @property
    def path(self) -> str:
        """The file of the call."""
        return self.scope.module.path

    @property
    def is_entered_plainly(self) -> bool:
        """Whether the receiver comes from a plain `with`."""
        return self.is_method and self.callee[ATTR_BASE][NAME_ID] in self.scope.plainly_entered

    @property
    def origin(self) -> str:
        """Where the callee comes from as far as it matters: a library's path, `OF_NOBODY`, or "" for the project."""
        if self._origin is None:
            external = self.external
            if is_carried(external) or self._is_met_again(external):
                external = ""
            if not external and (is_unlisted(self.program, self.callee, self.scope) or self._is_given_by_default()):
                external = OF_NOBODY
            self._origin = external
        return self._origin

    @property
    def origin_of_base(self) -> str:
        """The same, where a base that nobody knows may bring the method: that says nothing against it."""
        return "" if is_of_unknown_base(self.program, self.origin, self.scope) else self.origin

    def _is_met_again(self, external: str) -> bool:
        """Whether an object of the project is met again behind one of a library: `Context.get().app.token_manager`.

        It is called like a class of the project that has the method.
        """
        if not _BEHIND.search(external) or library.knows(external.partition(".")[0]):
            return False
        receiver, name = external.split(".")[-2:]
        return (
            is_telling(f"{receiver}.{name}")
            and is_called_like_owner(self.program, receiver, name, "")
            and self.text.endswith(f".{name}")
        )

    def _is_given_by_default(self) -> bool:
        """Whether the receiver is a parameter with something of a library for a default: `trio.TASK_STATUS_IGNORED`."""
        callee, function = self.callee, self.function
        if callee[KIND] != "attr" or callee[ATTR_BASE][KIND] != "name":
            return False
        param = function.params.get(callee[ATTR_BASE][NAME_ID])
        if param is None or param[1] is not None or param[2] is None or param[2][KIND] != "attr":
            return False
        default = self.program.static(function.module, function.parent).value(param[2])
        return isinstance(default, External) or (
            isinstance(default, Instance) and isinstance(default.cls, LibraryClass)
        )


def is_carried(external: str) -> bool:
    """Whether an object of a library only carries what the project has put in: `typer.Context().obj.client.get`."""
    return _CARRIED.search(external) is not None


def is_unlisted(program: Inference, callee: Node, scope: Evaluator) -> bool:
    """Whether the receiver is known, and neither its class nor one that derives from it has the method.

    It comes from a base of which nothing is known, or is set from outside: namesakes in other classes say nothing.
    """
    if callee[KIND] != "attr" or scope.unmet is None or scope.unmet[0] != callee[AT]:
        return False
    base, name = scope.unmet[1], callee[ATTR_NAME]
    if (
        base.guess
        or callee[ATTR_BASE] in {("name", "self"), ("name", "cls")}
        or _may_have_more(program, base, name, scope)
    ):
        return False
    answers: MutableMapping[tuple[object, str], bool] = program.answers_to("methods of derived classes")
    key = (base.cls, name)
    answer = answers.get(key)
    if answer is None:
        classes = program.classes
        owners = [f.owner for f in program.index.functions_named(name) if f.owner is not None]
        answer = answers[key] = (isinstance(base.cls, Class) and classes.may_be_given(base.cls, name)) or any(
            base.cls in classes.order(relative) for owner in owners for relative in (owner, *classes.children(owner))
        )
    return not answer


def is_of_unknown_base(program: Inference, external: str, scope: Evaluator) -> bool:
    """Whether only a base that nobody knows can bring the method with it: that of a library the file imports."""
    base = scope.unmet[1].cls if external == OF_NOBODY and scope.unmet is not None else None
    return isinstance(base, Class) and None in program.classes.order(base)


def _may_have_more(program: Inference, base: Instance, name: str, scope: Evaluator) -> bool:
    """Whether the object may well have what its class lacks: a protocol says the least, and `hasattr` asks."""
    if isinstance(base.cls, Class) and is_protocol(base.cls):
        return True
    function = scope.function
    if function is None or "hasattr" not in function.facts.calls:
        return False
    source = program.text(function.module.path).cut(*function.facts.at)
    return re.search(rf"""\bhasattr\([^()]+,\s*["']{re.escape(name)}["']\s*\)""", source) is not None
