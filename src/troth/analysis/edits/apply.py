"""Apply edits to a text, and which edits can be applied together."""

from collections.abc import Iterable, Sequence

from troth.analysis.findings import Edit, Fix
from troth.errors import InternalError

__all__ = ["apply", "compatible"]


def apply(text: str, edits: Iterable[Edit]) -> str:
    """`text` after `edits`, all of them of one file and none of them overlapping; equal ones count once.

    Insertions at the same place keep the order in which they were given.
    """
    parts: list[str] = []
    at = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        if not at <= edit.start <= edit.end <= len(text):
            raise InternalError(
                f"{edit.path}: the edit {edit!r} overlaps another one or lies outside the text.\n"
                "Nothing was written.\nPlease report this with the file."
            )
        parts += (text[at : edit.start], edit.text)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def compatible(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes that can be applied in one go: of two that touch the same text the earlier one is kept, and whole.

    A fix that is left out is no loss: it is offered again when the text is looked at anew.
    """
    chosen: list[Fix] = []
    edits_of: dict[str, list[Edit]] = {}
    for fix in fixes:
        if any(_clash(edit, earlier) for edit in fix.edits for earlier in edits_of.get(edit.path, ())):
            continue
        chosen.append(fix)
        for edit in fix.edits:
            edits_of.setdefault(edit.path, []).append(edit)
    return chosen


def _clash(first: Edit, second: Edit) -> bool:
    if first == second:
        return False  # the same change asked for twice, such as one import for two calls
    if first.start == first.end or second.start == second.end:  # an insertion clashes with what it lies in or touches
        return first.start <= second.end and second.start <= first.end
    return first.start < second.end and second.start < first.end
