"""Say what a session allows: how many members, for how long, how trusted, how often."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from troth.errors import MisuseError
from troth.runtime.sessions.checks import check_number, check_text
from troth.runtime.sessions.policy.allowlist import check_paths
from troth.runtime.sessions.policy.decision import NamedPolicy, PolicyRequest, PolicyTable, load_policy
from troth.runtime.sessions.policy.ring import Ring

__all__ = ["RATES", "SessionConfig"]

RATES: Mapping[Ring, tuple[float, float]] = {
    Ring.ROOT: (100.0, 200.0),
    Ring.PRIVILEGED: (50.0, 100.0),
    Ring.STANDARD: (20.0, 40.0),
    Ring.SANDBOX: (5.0, 10.0),
}
"""Acts a second, and how many may come at once, for each ring."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """What a session allows. Below `min_score` a member is in the sandbox, ring 3.

    `rates` gives acts a second and how many may come at once, for each ring; a ring that is left out has no limit.
    Attempts beyond one's ring add up, each with its distance; `breach_limit` of them within `breach_window` seconds
    suspend the member. `policy` is asked before every act, step and tool call: a callable of either color, or a
    `PolicyTable`. A callable is written down by its name, so a process that goes on with the session has to find it
    there, or be given it (`Hypervisor(policies=[…])`). `commands` are what actions may start, and
    `paths` the folders in which they may use files; an action with such an input is refused where none is allowed.
    """

    max_members: int = 10
    max_duration: float = 3600
    min_score: float = 0.6
    rates: Mapping[Ring, tuple[float, float]] = field(default_factory=lambda: dict(RATES))
    breach_limit: float = 10
    breach_window: float = 60
    policy: Callable[[PolicyRequest], object] | None = None
    commands: Sequence[str] | None = None
    paths: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        check_number("`max_members`", self.max_members, 1, 1000, whole=True)
        check_number("`max_duration`", self.max_duration, 0.001, 604800)
        check_number("`min_score`", self.min_score, 0, 1)
        check_number("`breach_limit`", self.breach_limit, 1, 1e9)
        check_number("`breach_window`", self.breach_window, 0.001, 604800)
        declared_rates: object = self.rates
        if not isinstance(declared_rates, Mapping):
            raise MisuseError(f"`rates` is {declared_rates!r}; it maps rings to `(acts a second, at once)`.")
        rates = {}
        for ring, rate in declared_rates.items():
            if isinstance(ring, bool) or ring not in set(Ring):
                raise MisuseError(f"`rates` has a rate for {ring!r}, which is not a ring, so it would never apply.")
            if not isinstance(rate, tuple | list) or len(rate) != 2:
                raise MisuseError(f"The rate of ring {int(ring)} is {rate!r}; give `(acts a second, at once)`.")
            rates[Ring(ring)] = (
                check_number("Acts a second", rate[0], 0.001, 1e9),
                check_number("Acts at once", rate[1], 1, 1e9),
            )
        object.__setattr__(self, "rates", rates)
        for row in () if self.commands is None else self.commands:
            check_text("An allowed command", row)
        if self.commands is not None:
            object.__setattr__(self, "commands", tuple(self.commands))
        if self.paths is not None:
            object.__setattr__(self, "paths", check_paths(self.paths))
        if self.policy is not None:
            load_policy(self.policy)  # refuses what nobody could ask

    def to_json(self) -> str:
        """For the record."""
        return json.dumps(
            {
                "max_members": self.max_members,
                "max_duration": self.max_duration,
                "min_score": self.min_score,
                "rates": {str(int(ring)): list(rate) for ring, rate in self.rates.items()},
                "breach_limit": self.breach_limit,
                "breach_window": self.breach_window,
                **({} if self.commands is None else {"commands": list(self.commands)}),
                **({} if self.paths is None else {"paths": list(self.paths)}),
                **({} if self.policy is None else {"policy": load_policy(self.policy).to_json()}),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "SessionConfig":
        """From the record."""
        values = json.loads(text)
        policy = values.get("policy")
        if policy is not None:
            values["policy"] = (
                PolicyTable.from_json(policy["table"]) if "table" in policy else NamedPolicy(policy["reference"])
            )
        values["rates"] = {Ring(int(ring)): tuple(rate) for ring, rate in values["rates"].items()}
        return cls(**values)
