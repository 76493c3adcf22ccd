"""Show a conversation, a delivery or a session as one HTML file that needs nothing else.

Each is made of the very value that `--json` prints, so nothing can stand in the file that is not there. All of it is
text of agents, users and tools, and shown as text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from troth.runtime.tools.call import error_in
from troth.runtime.workflows.render.html import html_file
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag
from troth.runtime.workflows.render.run_parts import css
from troth.runtime.workflows.render.words import RUN_MARKS, at, used, value

__all__ = ["conversation_file", "delivery_file", "session_file"]

_LONG = 100_000  # letters of one message
_COLORS = {
    "finished": "completed",
    "delivered": "completed",
    "active": "running",
    "dead": "failed",
    "due": "waiting",
    "leased": "running",
    "stored": "waiting",
    "expired": "cancelled",
    "killed": "failed",
    "paused": "waiting",
    "suspended": "waiting",
}
_SHAPES = {str(word): mark for word, mark in RUN_MARKS.items()}
_LIMITS = "limits"
_DID = ("entry", "when", "kind", "what", "outcome", "why")


def conversation_file(row: Mapping[str, Any]) -> str:
    """A conversation: where it stands, what it used, and all that was said and done."""
    tokens = row["usage"]["input_tokens"] + row["usage"]["output_tokens"]
    spent = used(tokens, row["usage"]["cost"])
    return html_file(
        f"conversation {row['id']} · {row['status']}",
        _title("Conversation", row["id"], row["status"]),
        _panel(f"✗ the last run failed with {row['error']}", "failed") if row["error"] else None,
        _facts(
            ("agent", row["agent"]),
            ("opened", at(row["opened_at"])),
            ("last active", at(row["last_at"])),
            ("said and called", f"{row['turns']} turns, {row['calls']} calls"),
            ("used", spent or None),
        ),
        tag("h2", "Messages and tool calls"),
        tag("table", (_entry(*pair) for pair in _paired(row["entries"])), class_="talk"),
    )


_Entry = Mapping[str, Any]


def _paired(entries: Sequence[_Entry]) -> Iterator[tuple[_Entry, _Entry | None]]:
    """Each entry in its order, the answer of a tool beside the call that it answers."""
    answers: dict[int, _Entry] = {}
    unanswered: dict[str, int] = {}  # a model may give the same id to two calls, one after the other
    paired: set[int] = set()
    for place, entry in enumerate(entries):
        if entry["who"] == "call":
            unanswered[entry["call"]] = place
        elif entry["who"] == "answer" and entry["call"] in unanswered:
            answers[unanswered.pop(entry["call"])] = entry
            paired.add(place)
    return ((entry, answers.get(place)) for place, entry in enumerate(entries) if place not in paired)


def _entry(entry: _Entry, answer: _Entry | None) -> Html:
    who, text = entry["who"], cut(entry["text"], _LONG)
    outcome: Html | None = None
    if who == "call":
        name, text = "assistant", f"→ {entry['tool']}({text})"
        outcome = join(tag("br"), _outcome(answer["text"]) if answer is not None else "◷ no answer yet")
    elif who == "answer":
        name, text = entry["tool"] or "tool", f"→ {text}"
    else:
        name = who
    return tag(
        "tr",
        tag("td", name, tag("br"), tag("span", at(entry["at"]), class_="soft")),
        tag("td", text, outcome),
        class_=who,
    )


def _outcome(text: str) -> Html:
    """What a tool answered; its error in words, with a mark, where it failed."""
    error = error_in(text)
    if error is None:
        return join("✓ it answered: ", cut(text, _LONG))
    return tag("span", f"✗ it failed: {cut(error, _LONG)}", class_="failed")


def delivery_file(row: Mapping[str, Any]) -> str:
    """A delivery: what it tells, to whom, and what became of it."""
    return html_file(
        f"delivery {row['id']} · {row['state']}",
        _title("Delivery", row["id"], row["state"]),
        _panel(row["problem"], "failed") if row["problem"] else None,
        _facts(
            ("promise", row["promise"]),
            ("promised", row["title"]),
            ("session", row["session"]),
            ("work", row["work"]),
            ("kind", row["kind"]),
            ("channel", row["channel"] or "none: it is stored"),
            ("meant for", row["meant_for"]),
            ("attempts", row["attempt"]),
            ("next attempt", _moment(row["due_at"])),
            ("receipt", row["receipt"]),
            ("promised at", at(row["created_at"])),
            ("over since", _moment(row["finished_at"])),
        ),
        _table("Attempts", ("attempt", "when", "channel", "outcome", "words"), map(_attempt, row["attempts"])),
        tag("h2", "What it tells"),
        tag("pre", cut(row["text"] or "", _LONG)),
        None if row["data"] is None else join(tag("h2", "Data"), tag("pre", shown_json(row["data"], _LONG))),
    )


def _attempt(attempt: Mapping[str, Any]) -> Sequence[object]:
    return attempt["number"], at(attempt["at"]), attempt["channel"] or "none", attempt["outcome"], attempt["words"]


def session_file(row: Mapping[str, Any]) -> str:
    """A governed session: its members, what waits, what was refused and killed, its texts and its audit trail."""
    return html_file(
        f"session {row['id']} · {row['state']}",
        _title("Session", row["id"], row["state"]),
        _panel(f"because {row['reason']}", "failed" if row["left"] else "next") if row["reason"] else None,
        (_panel(f"resists: {reason}", "failed") for reason in row["left"]),
        (_panel(f"{ask['agent']} wants {ask['what']}: {shown_json(ask['arguments'])}", "next") for ask in row["asks"]),
        (_panel(_kill(kill), "next" if kill["terminated"] else "failed") for kill in row["kills"]),
        _facts(
            ("created by", row["creator"]),
            ("created", at(row["created_at"])),
            ("ends", at(row["ends_at"])),
            ("ended", _moment(row["ended_at"])),
            *((name.replace("_", " "), value) for name, value in row[_LIMITS].items()),
        ),
        _table("Members", ("agent", "state", "ring", "score", "joined", "left"), map(_member, row["members"])),
        (_table(f"What {member['agent']} did", _DID, map(_activity, member["did"])) for member in row["members"]),
        _table("Open work", ("id", "agent", "kind", "what", "started"), map(_work, row["work"])),
        _table("Refused", ("entry", "when", "agent", "what", "why"), map(_refusal, row["refused"])),
        _table("Workspace", ("path", "owner", "written", "text"), map(_file, row["files"])),
        _table("Audit", ("entry", "when", "agent", "kind", "data"), map(_audit, row["audit"])),
    )


def _kill(kill: Mapping[str, Any]) -> str:
    word = "is terminated" if kill["terminated"] else "is NOT terminated; its membership is revoked"
    lines = [
        f"{name.replace('_', ' ')}: {entry}"
        for name in ("stopped", "undone", "handed_over", "left")
        for entry in kill[name]
    ]
    return "\n".join([f"{kill['agent']} {word}: {kill['reason']} ({at(kill['at'])})", *lines])


def _member(member: Mapping[str, Any]) -> Sequence[object]:
    score = f"{member['score']:g}"
    state = tag("span", _marked(member["state"]), class_=_class(member["state"]))
    return member["agent"], state, member["ring"], score, at(member["joined_at"]), _moment(member["left_at"]) or ""


def _activity(activity: Mapping[str, Any]) -> Sequence[object]:
    return tuple(
        at(activity["at"]) if name == "when" else activity["number" if name == "entry" else name] for name in _DID
    )


def _work(work: Mapping[str, Any]) -> Sequence[object]:
    return work["id"], work["agent"], work["kind"], work["what"], at(work["begun_at"])


def _refusal(entry: Mapping[str, Any]) -> Sequence[object]:
    data = entry["data"]
    return entry["number"], at(entry["at"]), entry["agent"], str(data.get("what", "")), str(data.get("why", ""))


def _file(file: Mapping[str, Any]) -> Sequence[object]:
    return file["path"], file["owner"], at(file["written_at"]), tag("pre", cut(file["text"], 4000))


def _audit(entry: Mapping[str, Any]) -> Sequence[object]:
    return (
        entry["number"],
        at(entry["at"]),
        entry["agent"],
        entry["kind"],
        tag("span", value(entry["data"], 2000), class_="mono"),
    )


# Pieces


def _title(kind: str, name: str, state: str) -> Html:
    word = tag("span", _marked(state), class_=f"state {_class(state)}")
    return join(tag("h1", kind, " ", tag("span", name, class_="soft mono")), tag("p", word))


def _marked(state: str) -> str:
    """A state as a word with a shape: color alone tells nobody anything."""
    mark = _SHAPES.get(_COLORS.get(state, state))
    return f"{mark} {state}" if mark else state


def _class(state: str) -> str:
    return css(_COLORS.get(state, state))


def _panel(text: str, kind: str) -> Html:
    return tag("div", tag("pre", cut(text, _LONG)), class_=f"panel {kind}")


def _facts(*pairs: tuple[str, object]) -> Html:
    rows = (
        tag("tr", tag("th", name, scope="row"), tag("td", cut(str(fact), 4000)))
        for name, fact in pairs
        if fact not in (None, "")
    )
    return tag("table", rows, class_="facts")


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Html | None:
    lines = [tag("tr", (tag("td", cell) for cell in row)) for row in rows]
    if not lines:
        return None
    head = tag("tr", (tag("th", column, scope="col") for column in columns))
    return join(tag("h2", title), tag("div", tag("table", head, lines, class_="log"), class_="scroll"))


def _moment(moment: float | None) -> str | None:
    return None if moment is None else at(moment)
