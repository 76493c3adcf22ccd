"""Answer what a policy says about an act: allow, deny, ask a person, or allow and say so.

A policy is a callable of either color that is given a `PolicyRequest`, or a `PolicyTable`. It answers an `Answer`, a
word alone (`"allow"`), or a word and a reason. Whatever else comes of it refuses the act: a policy that fails allows
nothing.
"""

import fnmatch
import hashlib
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.sessions.checks import check_number

__all__ = [
    "Answer",
    "LoadedPolicy",
    "NamedPolicy",
    "PolicyRequest",
    "PolicyTable",
    "Rule",
    "answer_of",
    "find_policy",
    "load_policy",
]

Word = Literal["allow", "deny", "ask", "log"]
_WORDS = frozenset(get_args(Word))
_EXPIRES = 3600.0  # seconds in which a person can answer


class PolicyRequest(NamedTuple):
    """Who wants to do what, in which ring and with which arguments. `kind` is `act`, `step`, `tool` or `write`.

    A write changes the workspace: `action` is `workspace.write`, say, and the arguments tell the path and how many
    `characters` the text has.
    """

    session: str
    agent: str
    action: str
    kind: str
    ring: int
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy answers. `ask` waits for the yes of `people` different persons, at most `expires` seconds."""

    word: Word
    reason: str = ""
    people: int = 1
    expires: float = _EXPIRES

    def __post_init__(self) -> None:
        """Refuse what is no answer."""
        if self.word not in _WORDS:
            raise MisuseError(f"A policy cannot return {self.word!r}; it can return {', '.join(sorted(_WORDS))}.")
        check_number("`people`", self.people, 1, 100, whole=True)
        check_number("`expires`", self.expires, 0.001, 604800)


def answer_of(value: object) -> Answer:
    """What a callable's value means. `MisuseError` if it means nothing."""
    if isinstance(value, Answer):
        return value
    if isinstance(value, str):
        return Answer(value)  # type: ignore[arg-type]  # another word is refused
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[1], str):
        return Answer(value[0], value[1])
    raise MisuseError(f"The policy returned {value!r}, which is not a decision.")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a table. `action` and `agent` are patterns as of a shell; `arguments` are equal, or one of a list.

    `rings` are those that it is about; without them it is about all.
    """

    answer: Word
    action: str = "*"
    agent: str = "*"
    rings: Iterable[int] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    people: int = 1
    expires: float = _EXPIRES


class PolicyTable:
    """A small policy of ours: the first row that fits answers; where none does, `otherwise`."""

    def __init__(self, rules: Iterable[Rule], otherwise: Word = "deny") -> None:
        self.rules = tuple(rules)
        self.otherwise = Answer(otherwise, "" if otherwise == "allow" else "no rule of the policy matches")
        self._rows = [_Row(rule) for rule in self.rules]
        self.digest = hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def __call__(self, request: PolicyRequest) -> Answer:
        """The answer of the first row that fits."""
        for row in self._rows:
            if row.fits(request):
                return row.answer
        return self.otherwise

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return {
            "otherwise": self.otherwise.word,
            "rules": [
                {
                    "answer": rule.answer,
                    "action": rule.action,
                    "agent": rule.agent,
                    "rings": None if rule.rings is None else sorted(map(int, rule.rings)),
                    "arguments": dict(rule.arguments),
                    "reason": rule.reason,
                    "people": rule.people,
                    "expires": rule.expires,
                }
                for rule in self.rules
            ],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "PolicyTable":
        """From the record."""
        return cls([Rule(**rule) for rule in values["rules"]], values["otherwise"])


class _Row:
    """A rule, made ready to be asked often."""

    def __init__(self, rule: Rule) -> None:
        if not isinstance(rule, Rule):
            raise MisuseError(f"A policy table has {rule!r} for a row. Give a `Rule`.")
        self.answer = Answer(rule.answer, rule.reason, rule.people, rule.expires)
        self._action = _pattern(rule.action)
        self._agent = _pattern(rule.agent)
        self._rings = None if rule.rings is None else frozenset(map(int, rule.rings))
        self._arguments = [
            (name, tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,))
            for name, value in rule.arguments.items()
        ]

    def fits(self, request: PolicyRequest) -> bool:
        if self._action is not None and self._action.match(request.action) is None:
            return False
        if self._agent is not None and self._agent.match(request.agent) is None:
            return False
        if self._rings is not None and request.ring not in self._rings:
            return False
        arguments = request.arguments
        return all(name in arguments and arguments[name] in values for name, values in self._arguments)


def _pattern(text: str) -> re.Pattern[str] | None:
    if not isinstance(text, str):
        raise MisuseError(f"A pattern of a policy is {text!r}; it has to be a string.")
    return None if text == "*" else re.compile(fnmatch.translate(text))


class LoadedPolicy:
    """A policy that can be asked: its color is decided, and its digest is known."""

    __slots__ = ("call", "color", "digest", "is_table", "reference")

    def __init__(self, call: Callable[[PolicyRequest], object]) -> None:
        self.color = bridge.color_of(call)
        if self.color not in (Color.SYNC, Color.ASYNC):
            raise MisuseError(
                f"The policy is {call!r}, and it is unclear whether it is sync or async.\n"
                "It was refused, because it might never be called. Give a sync or an async function, or a "
                "`PolicyTable`."
            )
        self.call = call
        self.is_table = isinstance(call, PolicyTable | NamedPolicy)
        self.reference = _reference(call)
        self.digest = _digest(call)

    def to_json(self) -> dict[str, Any]:
        """For the record: a table whole, a callable by name."""
        if isinstance(self.call, PolicyTable):
            return {"table": self.call.to_json()}
        return {"reference": self.reference}


class NamedPolicy:
    """Stands for a policy that is written down by its name. Nobody can ask it before it is found."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        self.digest = ""

    def __call__(self, request: PolicyRequest) -> Answer:  # noqa: ARG002
        """Nothing can be said, so nothing is allowed."""
        return Answer("deny", f"the policy {self.reference!r} is not registered; give `Hypervisor(policies=[…])`")


def load_policy(policy: object) -> LoadedPolicy:
    """The policy, ready to be asked. `MisuseError` if it cannot be."""
    if not callable(policy):
        raise MisuseError(f"The policy is {policy!r}, which cannot be called. Give a function or a `PolicyTable`.")
    return LoadedPolicy(policy)


def find_policy(reference: str) -> object | None:
    """The policy of that name, `package.module:name`, if it can be imported."""
    module, _, name = reference.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return target if callable(target) and not isinstance(target, type) else None


def _reference(call: object) -> str:
    if isinstance(call, NamedPolicy):
        return call.reference
    definition = call if hasattr(call, "__qualname__") else type(call)
    return f"{getattr(definition, '__module__', '')}:{getattr(definition, '__qualname__', '')}"


def _digest(call: object) -> str:
    """A digest of what the policy is: the one that it says itself, else of its source, else of its code."""
    own = getattr(call, "digest", None)
    if isinstance(own, str) and own:
        return own
    definition = call if inspect.isroutine(call) else type(call)
    try:
        text = inspect.getsource(definition).encode()
    except (OSError, TypeError):
        code = getattr(call, "__code__", None)
        text = repr(call).encode() if code is None else code.co_code + repr(code.co_consts).encode()
    return hashlib.sha256(text).hexdigest()
