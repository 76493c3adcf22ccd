"""Takes the first of several ways whose condition holds. A way owns its steps, so nothing falls through into another.

`otherwise` is required, if only as an empty list: what happens when no condition holds is written down, not guessed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from troth.runtime.workflows.document.expressions import Expression
from troth.runtime.workflows.document.field_types import Condition, Steps
from troth.runtime.workflows.document.fields import Desk, Field, dump_fields, fields_schema, read_fields
from troth.runtime.workflows.document.nodes import ListNode, MapNode, Node
from troth.runtime.workflows.document.problems import Unreadable
from troth.runtime.workflows.kinds import Decision, Kind, paths_in
from troth.runtime.workflows.spec import Block, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["KIND", "BranchArm", "BranchBody"]


@dataclass(frozen=True, slots=True)
class BranchArm:
    """One way: its condition (None for `otherwise`) and its steps."""

    when: Expression | None
    steps: tuple[StepSpec, ...]


@dataclass(frozen=True, slots=True)
class BranchBody:
    """The ways in the order they are tried; the last is `otherwise`."""

    branch: tuple[BranchArm, ...]


_WHEN = (
    Field("when", Condition(), "the condition of this branch", required=True),
    Field("steps", Steps(may_be_empty=True), "the steps of this branch", required=True, default=()),
)
_OTHERWISE = (
    Field("otherwise", Steps(may_be_empty=True), "the steps if no condition holds; may be empty", required=True),
)


class Ways:
    """The list under `branch:`."""

    def read(self, node: Node, desk: Desk) -> tuple[BranchArm, ...]:
        """The ways; one that can never be taken is a problem."""
        if not isinstance(node, ListNode) or not node.items:
            raise Unreadable(
                node.mark, "`branch` is a list of branches: `when` with `steps`, and `otherwise` at the end"
            )
        ways: list[BranchArm] = []
        closed_by: str | None = None
        for item in node.items:
            if not isinstance(item, MapNode):
                desk.problems.add(item.mark, "a branch is a map: `when` with `steps`, or `otherwise`")
                continue
            if closed_by is not None:
                desk.problems.add(item.mark, f"this branch can never run: {closed_by} comes before it")
            if item.get("otherwise") is not None:
                values, _ = read_fields(item, _OTHERWISE, desk, "a branch with `otherwise`")
                ways.append(BranchArm(None, cast("tuple[StepSpec, ...]", values["otherwise"] or ())))
                closed_by = "`otherwise`"
                continue
            values, is_whole = read_fields(item, _WHEN, desk, "a way")
            when = values["when"]
            if isinstance(when, Expression):
                if isinstance(when.constant, bool) and not when.constant:
                    desk.problems.add(when.mark, "this branch can never run: its condition is always false")
                if when.constant is True:
                    closed_by = "a branch that always runs"
                ways.append(BranchArm(when, cast("tuple[StepSpec, ...]", values["steps"])))
            elif is_whole:  # pragma: no cover -- a missing or broken condition is a problem already
                raise AssertionError(values)
        if all(way.when is not None for way in ways):
            desk.problems.add(
                node.mark,
                "this branch has no `otherwise` for the case that no condition holds",
                "End it with `- otherwise: […]`; `- otherwise: []` continues with the next step.",
            )
        return tuple(ways)

    def dump(self, value: object) -> object:
        """The list."""
        shown = []
        for way in cast("tuple[BranchArm, ...]", value):
            if way.when is None:
                shown.append(dump_fields({"otherwise": way.steps}, _OTHERWISE))
            else:
                shown.append(dump_fields({"when": way.when, "steps": way.steps}, _WHEN))
        return shown

    def schema(self) -> dict[str, object]:
        """A list of ways."""
        return {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [fields_schema(_WHEN), fields_schema(_OTHERWISE)]},
            "contains": {"required": ["otherwise"]},
        }


def perform(step: StepSpec, body: BranchBody, frame: "BlockFrame") -> Decision:
    """Take one way and no other; the output is that of its last step."""
    for number, way in enumerate(body.branch):
        if way.when is None or way.when.holds(frame.state):
            yield from frame.took(step, _label(way, number))
            return (yield from frame.run_steps(way.steps))
    raise AssertionError("a branch ends with `otherwise`")  # the loader sees to it


def _label(way: BranchArm, number: int) -> str:
    return f"when {way.when.text}" if way.when is not None else ("otherwise" if number else "always")


KIND = Kind(
    name="branch",
    says="runs the first branch whose condition holds",
    body=BranchBody,
    fields=(Field("branch", Ways(), "the branches, in the order of their conditions", required=True),),
    perform=perform,
    reads=lambda body: paths_in(*(way.when for way in body.branch)),
    blocks=lambda body: tuple(Block(_label(way, n), way.steps) for n, way in enumerate(body.branch)),
)
