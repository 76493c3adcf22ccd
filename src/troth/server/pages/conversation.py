"""A conversation: what was said, each call of a tool beside what asked for it, and what the agent says."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from troth.runtime.conversations import Conversation
from troth.runtime.conversations.log import TOKENS, Status, stream_of
from troth.runtime.conversations.transcript import Transcript, TranscriptEntry, read_transcript
from troth.runtime.tools.call import error_in
from troth.runtime.workflows.render.markup import Html, cut, join, tag, text_box
from troth.runtime.workflows.render.words import span, used
from troth.server.access.owners import afind
from troth.server.access.scopes import Scope, check_scope
from troth.server.channels import HttpChannel
from troth.server.errors import ApiError, not_found
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import address, badge, fact, facts, moment, panel, times
from troth.server.pages.frame.view import View
from troth.server.pages.lists.talk_row import agent_name

__all__ = ["act", "show"]

_SHOWN = 200  # entries on one page
_SCREEN = 12  # entries that one screen has about; with more, there is a way past them
_LONG = 20_000  # letters of one entry
_TALL, _NARROW = 480, 32  # letters that any screen shows without scrolling them, and those of one line on a phone
_STOPPING = {
    "stopped": "Nothing was running, so there was nothing to stop.",
    "will stop": "The run will stop: an async step at its next await, a sync step at its end.",
    "cannot stop": "The run is in another process, which was notified; it stops between two steps.",
    "paused": "The run was asked to pause; it ends at the end of its step, and continues when it is run again.",
}


async def show(view: View) -> HtmlPage:
    """The page."""
    await afind(view.context, view.caller, "conversation", view.id)
    store = view.context.store
    talk = await view.ask(lambda: read_transcript(store, view.id))
    if talk is None:
        raise not_found("conversation", view.id)
    piece = await view.ask(lambda: _tokens(view)) if talk.status is Status.RUNNING else ""
    agent = await _agent_of(view)
    stopping = view.word("stopping")
    body = join(
        tag(
            "div",
            tag("h1", cut(agent or agent_name(talk.agent), 120)),
            badge(talk.status),
            tag("code", talk.id, class_="id", data_copy="id"),
            class_="title",
        ),
        tag(
            "div",
            panel(tag("b", "✗ the last run failed"), text_box(talk.error, 2000), kind="failed"),
            data_copy_error=True,
        )
        if talk.error
        else None,
        panel(_STOPPING[stopping], kind="next") if stopping in _STOPPING else None,
        _about(view, talk, agent),
        _entries(view, talk, piece),
        _buttons(view, talk, agent),
    )
    follows = address(on="conversation", id=talk.id)[1:]
    return HtmlPage(f"{talk.status}: {talk.agent} {talk.id}", body, "conversations", follows)


async def _agent_of(view: View) -> str | None:
    """The agent of this server that the conversation is with; none where it was begun elsewhere."""
    belonging = await afind(view.context, view.caller, "conversation", view.id)
    name = "" if belonging is None else belonging.details.get("agent", "")
    return name if name in view.context.agents else None


def _tokens(view: View) -> str:
    """What the agent has said since the last whole message."""
    store, stream = view.context.store, stream_of(view.id)
    last = store.last_event(stream)
    pieces: list[str] = []
    for event in store.events(stream, after=max(0, last - 500), limit=501):
        if event.kind == TOKENS and isinstance(event.payload, dict):
            pieces.append(str(event.payload.get("text", "")))
        elif event.kind == "message":
            pieces.clear()
    return "".join(pieces)


def _about(view: View, talk: Transcript, agent: str | None) -> Html:
    tokens = talk.usage.input_tokens + talk.usage.output_tokens
    budget = getattr(view.context.agents.get(agent or ""), "budget", None)
    limits = [
        _meter(name, amount, limit)
        for name, amount in (
            ("turns", talk.turns),
            ("tokens", tokens),
            ("cost", talk.usage.cost),
            ("seconds", _worked(talk)),
        )
        if (limit := getattr(budget, name, None))
    ]
    run = talk.id.removeprefix("agent:").split(":")[0] if talk.id.startswith("agent:") else ""
    return facts(
        fact("agent", tag("code", cut(talk.agent, 200))) if talk.agent else None,
        fact("opened", moment(talk.opened_at)),
        fact("last active", moment(talk.last_at)),
        fact(
            "so far",
            f"{times(talk.turns, 'turn')}, {times(talk.calls, 'tool call')}",
            f", {used(tokens, talk.usage.cost)}" if tokens else None,
        ),
        fact("budget", limits) if limits else None,
        fact("step of the run", tag("a", run, href=view.link("runs", run))) if run else None,
    )


def _worked(talk: Transcript) -> float:
    """Seconds since the first turn of the agent, as its budget counts them: also those in which nobody asked."""
    first = next((entry.at for entry in talk.entries if entry.who in ("assistant", "call")), None)
    return 0.0 if first is None else max(0.0, round(time.time() - first))


def _meter(name: str, amount: float, limit: float) -> Html:
    if name == "seconds":
        label = f"{span(amount)} of {span(limit)} since its first turn"
    else:
        label = f"{_number(amount)} of {_number(limit)} {name} used"
    return tag(
        "div",
        tag("meter", label, min="0", max=str(limit), value=str(min(amount, limit)), aria_label=label),
        f" {label}",
    )


def _number(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.4f}".rstrip("0")


@dataclass(frozen=True, slots=True)
class _Call:
    """The call of a tool with what came of it."""

    asked: TranscriptEntry
    answer: TranscriptEntry | None


def _paired(entries: Sequence[TranscriptEntry]) -> Iterator[TranscriptEntry | _Call]:
    """The entries in their order, each answer beside the call that it answers."""
    answers: dict[int, TranscriptEntry] = {}
    unanswered: dict[str, int] = {}  # a model may give the same id to two calls, one after the other
    for place, entry in enumerate(entries):
        if entry.who == "call":
            unanswered[entry.call] = place
        elif entry.who == "answer" and entry.call in unanswered:
            answers[unanswered.pop(entry.call)] = entry
    paired = set(map(id, answers.values()))
    for place, entry in enumerate(entries):
        if entry.who == "call":
            yield _Call(entry, answers.get(place))
        elif id(entry) not in paired:
            yield entry


def _entries(view: View, talk: Transcript, piece: str) -> Html:
    shown = list(_paired(talk.entries))
    until = view.number("until") or len(shown)
    first = max(0, until - _SHOWN)
    earlier = tag("a", f"{first} earlier", href=view.link("conversations", talk.id, until=first)) if first else None
    later = tag("a", "to the end", href=view.link("conversations", talk.id)) if until < len(shown) else None
    newest = tag("a", "to what was said last ↓", href="#newest") if until - first > _SCREEN else None
    items = [_entry(entry, place) for place, entry in enumerate(shown[first:until], start=first)]
    if piece:
        items.append(
            tag(
                "li",
                tag("div", "assistant", class_="who"),
                _box(piece, "typing"),
                class_="said assistant",
                id="typing",
            )
        )
    links = [link for link in (earlier, later, newest) if link is not None]
    return join(
        tag("nav", links, class_="pager", aria_label="More of this conversation") if links else None,
        tag("ol", items, class_="talk-log", aria_label="What was said"),
        tag("span", "", id="newest"),
    )


def _box(text: str, css: str | None = None) -> Html:
    """A text in a box that is scrolled where it is long, by keyboard, too."""
    can_scroll = len(text) > _TALL or text.count("\n") >= _TALL // _NARROW
    return tag("pre", cut(text, _LONG), class_=css, tabindex="0" if can_scroll else None)


def _entry(entry: TranscriptEntry | _Call, place: int) -> Html:
    if isinstance(entry, _Call):
        outcome = _outcome(entry.answer)
        head = tag("div", tag("span", f"calls {entry.asked.tool}"), moment(entry.asked.at), class_="who")
        return tag(
            "li",
            head,
            _box(entry.asked.text),
            tag("div", outcome, class_="outcome"),
            class_="said call",
            id=f"said-{place}",
        )
    who = f"run {cut(entry.text, 300)}" if entry.who == "run" else entry.tool or entry.who
    head = tag("div", tag("span", who), moment(entry.at), class_="who")
    text = _box(entry.text) if entry.who != "run" else None
    return tag("li", head, text, class_=f"said {entry.who}", id=f"said-{place}")


def _outcome(answer: TranscriptEntry | None) -> Html:
    """What a tool answered; its error in words, with a mark, where it failed."""
    if answer is None:
        return tag("p", "◷ no answer yet", class_="soft")
    error = error_in(answer.text)
    if error is None:
        return join(tag("div", "✓ it answered", class_="who"), _box(answer.text))
    return join(tag("div", tag("b", "✗ it failed"), class_="failed"), _box(error))


def _buttons(view: View, talk: Transcript, agent: str | None) -> Html:
    if agent is None:
        return tag("p", "Its agent is not on this server, so the conversation is read-only here.", class_="soft")
    path = address("conversations", talk.id)
    box = tag(
        "label",
        tag("span", "say something"),
        tag("textarea", name="text", id="say", required=True, maxlength="100000", rows="3"),
        class_="field say",
    )
    is_running = talk.status is Status.RUNNING
    return tag(
        "div",
        view.button(path, "Send", scope=Scope.RUN, fields={"do": "send"}, inputs=[box], kind="primary"),
        view.button(path, "Let it answer", scope=Scope.RUN, fields={"do": "run"}) if not is_running else None,
        view.button(path, "Pause", scope=Scope.ACT, fields={"do": "pause"}) if is_running else None,
        view.button(path, "Interrupt", scope=Scope.ACT, fields={"do": "interrupt"}, kind="danger")
        if is_running
        else None,
        class_="buttons",
    )


async def act(view: View, form: dict[str, str]) -> str:
    """Send, run, pause or interrupt."""
    verb = form.get("do")
    check_scope(view.caller, Scope.RUN if verb in ("send", "run") else Scope.ACT)
    agent = await _agent_of(view)
    if agent is None:
        raise ApiError(409, "agent_missing", "The agent of this conversation is not on this server.")
    conversation = await view.context.turns.open(agent, view.id)
    path = address("conversations", view.id)
    match verb:
        case "send":
            text = form.get("text", "").replace("\r\n", "\n").strip()
            if not text:
                raise ApiError(400, "invalid_field", "There is nothing to send.", param="text")
            await view.context.turns.owe(view.id, agent)
            await conversation.asend(text)
            await _start(view, conversation)
        case "run":
            await view.context.turns.owe(view.id, agent)
            await _start(view, conversation)
        case "pause":
            await conversation.apause()
            return address("conversations", view.id, stopping="paused")
        case "interrupt":
            stopping = await view.context.turns.interrupt(conversation)
            return address("conversations", view.id, stopping=stopping.value)
        case _:
            raise ApiError(400, "invalid_request", "This button is not supported, so nothing was done.")
    return path


async def _start(view: View, conversation: Conversation) -> None:
    with HttpChannel.session(view.id):
        await view.context.turns.start(conversation)
