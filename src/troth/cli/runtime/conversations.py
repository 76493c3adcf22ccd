"""Look at conversations: list them, and show what was said and done in one."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.html_output import add_html, write_page
from troth.cli.paging import add_page, check_page, following
from troth.cli.pipe import say, say_json, warn
from troth.cli.stores import add_app, add_store, looked_into
from troth.cli.terminal import Style, output_width
from troth.cli.verbs import add_verbs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.conversations.transcript import Transcript

__all__ = ["COMMAND"]

Verb = Callable[["Runtime", argparse.Namespace], int]
_MANY = 1000  # conversations among which one is looked for by the beginning of its id
_COLORS = {"finished": "green", "failed": "red", "running": "blue"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth conversations`, each with its own arguments."""
    add_verbs(parser, _VERBS, add_store, add_app)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says, on a store that is there already."""
    with looked_into(args) as runtime:
        return _VERBS[args.verb][2](runtime, args)


def _declare_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", metavar="STATE", help="only those in this state, as in `failed` or `running`")
    add_page(parser, "conversations, most recently active first")


def _list(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.conversations.transcript import Transcript, read_conversations
    from troth.runtime.workflows.render.words import at

    check_page(args)
    page = runtime.lists.conversations(state=args.state, cursor=args.before, limit=args.limit)
    talks = read_conversations(runtime.store, [item.id for item in page])
    sound = [talk for talk in talks if isinstance(talk, Transcript)]
    if args.json:
        say_json([_as_json(talk, whole=False) for talk in sound])
    elif not talks:
        say(["no conversations yet" if args.state is None else f"no conversations are {args.state}"])
    else:
        paint = Style(sys.stdout)
        wide = max((len(talk.id) for talk in sound), default=0)
        say(
            f"{talk.id:<{wide}}  {_state(talk, paint, 11)}  {at(talk.last_at)}  {_counts(talk)}  {talk.agent}".rstrip()
            for talk in sound
        )
    for damage in talks:
        if not isinstance(damage, Transcript):
            warn(str(damage))
    more = following(args, "troth conversations list", page.next)
    if more is not None:
        warn(f"There are more: {more}")
    return Exit.CLEAN if len(sound) == len(talks) else Exit.FOUND


def _declare_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("conversation", metavar="ID", help="the conversation: its id, the beginning of it, or `last`")
    add_html(parser)


def _show(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.workflows.render.printable import printable
    from troth.runtime.workflows.render.talk import talk_lines
    from troth.runtime.workflows.render.words import at, used

    talk = _find(runtime, args.conversation)
    if args.json:
        say_json(_as_json(talk, whole=True))
        return Exit.CLEAN
    if args.html:
        from troth.runtime.workflows.render.record_files import conversation_file

        write_page(args.html, conversation_file(_as_json(talk, whole=True)))
        return Exit.CLEAN
    talk = printable(talk)
    paint = Style(sys.stdout)
    lines = [f"{talk.id}  {_state(talk, paint)}", f"opened {at(talk.opened_at)}, last active {at(talk.last_at)}"]
    if talk.agent:
        lines.append(f"agent  {talk.agent}")
    spent = used(talk.usage.input_tokens + talk.usage.output_tokens, talk.usage.cost)
    lines.append(f"{_counts(talk)}{f', {spent}' if spent else ''}")
    if talk.error:
        lines += ["", paint(f"✗ the last run failed with {talk.error}", "red")]
    say([*lines, "", *talk_lines(talk.entries, output_width(), whole=True)])
    return Exit.CLEAN


def _find(runtime: "Runtime", word: str) -> "Transcript":
    """The conversation that is meant: of that id, the only one whose id begins so, or the one that was last active."""
    from troth.runtime.conversations.transcript import read_transcript
    from troth.runtime.workflows.document.problems import did_you_mean

    store = runtime.store
    talk = read_transcript(store, word)
    if talk is not None:
        return talk
    newest = runtime.lists.conversations(limit=1 if word == "last" else _MANY)
    ids = [item.id for item in newest]
    begins = ids if word == "last" else [talk_id for talk_id in ids if talk_id.startswith(word)]
    if len(begins) > 1:
        raise MisuseError(
            f"{word!r} matches the beginning of {len(begins)} conversations: {', '.join(begins[:5])} … Give more "
            "characters."
        )
    talk = read_transcript(store, begins[0]) if begins else None
    if talk is None:
        raise MisuseError(
            f"There is no conversation {word!r} in this store. {did_you_mean(word, ids, kind='conversation')}"
        )
    return talk


def _state(talk: "Transcript", paint: Style, width: int = 0) -> str:
    return paint(f"{talk.status:<{width}}", _COLORS.get(talk.status, "yellow"))


def _counts(talk: "Transcript") -> str:
    turns, calls = (
        f"{count} {word}{'s'[: count != 1]}" for count, word in ((talk.turns, "turn"), (talk.calls, "call"))
    )
    return f"{turns}, {calls}"


def _as_json(talk: "Transcript", *, whole: bool) -> dict[str, Any]:
    row = {**asdict(talk), "turns": talk.turns, "calls": talk.calls}
    if not whole:
        del row["entries"]
    return row


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "list": ("list conversations, most recently active first", _declare_list, _list),
    "show": ("show what was said and done in one conversation", _declare_show, _show),
}

COMMAND = Command(
    summary="show what agents received, said and did",
    description=(
        "Shows the conversations in a store: those that agents had on their own, and those of agent steps of\n"
        "workflows, whose ids begin with `agent:` and the id of the run."
    ),
    examples=(
        Example("troth conversations list", "the most recently active ones, with their states"),
        Example("troth conversations show last", "what was said, which tools were called, and what they answered"),
        Example("troth conversations show last --json", "the same as JSON"),
        Example("troth conversations show last --html talk.html", "the same as a self-contained page"),
    ),
    add_arguments=add_arguments,
    run=run,
)
