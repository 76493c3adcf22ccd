"""Look at governed sessions, stop them or their agents, and answer acts that wait for a person."""

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.html_output import add_html, write_page
from troth.cli.paging import add_page, check_page, following
from troth.cli.pipe import say, say_json, warn
from troth.cli.stores import add_store, find_value, no_such_store, store_of
from troth.cli.verbs import add_verbs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.sessions import Hypervisor, Session

__all__ = ["COMMAND", "governed"]

Verb = Callable[["Hypervisor", argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth session`, each with its own arguments."""
    parsers = add_verbs(parser, _VERBS, add_store)
    parsers["try"].add_argument("--on", dest="store", metavar="FILE", help="the same as `--store`")


def governed(args: argparse.Namespace) -> "Hypervisor":
    """A hypervisor on a file that has to be there already."""
    from troth.runtime.sessions import Hypervisor

    store = store_of(args)
    if (missing := no_such_store(store, ", so there are no sessions to look at")) is not None:
        raise missing
    return Hypervisor(store, recover=False)  # a command does what it was asked for, and leaves the rest alone


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    with governed(args) as hypervisor:
        return _VERBS[args.verb][2](hypervisor, args)


def _declare_list(parser: argparse.ArgumentParser) -> None:
    add_page(parser, "sessions, the newest first")
    parser.add_argument(
        "--state", metavar="STATE", help="only those in this state (default: all that are not archived)"
    )


def _list(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    from troth.runtime.lists import words_of
    from troth.runtime.sessions.state import SessionState

    check_page(args)
    states = words_of(SessionState, args.state, "session") or {state.value for state in SessionState} - {"archived"}
    page = hypervisor.store.lists.sessions(states=states, cursor=args.before, limit=args.limit)
    sessions = [session for item in page if (session := hypervisor.get(item.id)) is not None]
    if args.json:
        say_json([session.to_json() for session in sessions])
    elif not sessions:
        say(["No sessions."])
    else:
        say(
            [
                f"{session.id}  {session.state.value:<11}  {len(session.present)} present  created by {session.creator}"
                for session in sessions
            ]
        )
    more = following(args, "troth session list", page.next)
    if more is not None:
        warn(f"There are more: {more}")
    return Exit.CLEAN


def _declare_one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help="the session's id")


def _declare_show(parser: argparse.ArgumentParser) -> None:
    _declare_one(parser)
    add_html(parser)


def _session_of(hypervisor: "Hypervisor", session_id: str) -> "Session":
    session = hypervisor.get(session_id)
    if session is None:
        raise MisuseError(f"There is no session {session_id!r} in this store. `troth session list` lists them.")
    return session


def _show(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    from troth.runtime.sessions.details import session_details

    session = _session_of(hypervisor, args.session)
    if args.json:
        say_json(session_details(hypervisor.store, session))
        return Exit.CLEAN
    if args.html:
        from troth.runtime.workflows.render.record_files import session_file

        write_page(args.html, session_file(session_details(hypervisor.store, session)))
        return Exit.CLEAN
    lines = [f"session {session.id}: {session.state.value}, created by {session.creator}"]
    if session.reason:
        lines.append(f"  because {session.reason}")
    lines += [f"  left: {reason}" for reason in session.left]
    lines += [
        f"  {member.agent}  {member.state}  ring {int(member.ring)}  score {member.score:g}"
        for member in session.members
    ]
    say(lines)
    return Exit.CLEAN


def _declare_kill(parser: argparse.ArgumentParser) -> None:
    _declare_one(parser)
    parser.add_argument("agent", metavar="AGENT", help="the agent's id")
    parser.add_argument("--reason", default="killed from the command line", help="why (recorded in the audit trail)")
    parser.add_argument("--substitute", metavar="AGENT", help="a member that takes over open work")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait (default: 5)")


def _kill(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    _session_of(hypervisor, args.session)
    kill = hypervisor.kill(
        args.session, args.agent, reason=args.reason, substitute=args.substitute, timeout=args.timeout
    )
    if args.json:
        say_json(kill.to_json())
    else:
        lines = [
            f"{kill.agent} {'is terminated' if kill.terminated else 'is NOT terminated; its membership is revoked'}"
        ]
        for name in ("stopped", "undone", "handed_over", "left"):
            lines += [f"  {name.replace('_', ' ')}: {entry}" for entry in getattr(kill, name)]
        say(lines)
    return Exit.CLEAN if kill.terminated else Exit.FOUND


def _declare_terminate(parser: argparse.ArgumentParser) -> None:
    _declare_one(parser)
    parser.add_argument(
        "--reason", default="terminated from the command line", help="why (recorded in the audit trail)"
    )
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait (default: 5)")


def _terminate(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    _session_of(hypervisor, args.session)
    session = hypervisor.terminate(args.session, reason=args.reason, timeout=args.timeout)
    if args.json:
        say_json(session.to_json())
    else:
        say([f"session {session.id} is {session.state.value}"])
    return Exit.CLEAN


def _declare_asks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", nargs="?", help="only those of this session")


def _asks(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    asks = hypervisor.asks(args.session)
    if args.json:
        say_json([ask.to_json() for ask in asks])
    elif not asks:
        say(["Nothing waits for an answer."])
    else:
        for ask in asks:
            yes = sum(1 for _, is_yes, _ in ask.answers if is_yes)
            say(
                [
                    f"{ask.id}  {ask.agent} wants {ask.what} {json.dumps(ask.arguments)}",
                    f"  session {ask.session}, approved by {yes} of {ask.people}, digest {ask.digest}",
                    *([f"  because {ask.reason}"] if ask.reason else []),
                ]
            )
    return Exit.CLEAN


def _declare_answer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ask", metavar="ASK", help="its id, from `troth session asks`")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--yes", action="store_true", help="allow it")
    which.add_argument("--no", action="store_true", help="refuse it")
    parser.add_argument("--by", required=True, metavar="NAME", help="who answers (recorded in the audit trail)")
    parser.add_argument("--reason", default="", help="why (recorded in the audit trail)")
    parser.add_argument("--digest", metavar="DIGEST", help="fail unless this act is the one that waits")


def _answer(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    ask = hypervisor.answer(args.ask, by=args.by, yes=args.yes, reason=args.reason, digest=args.digest)
    if args.json:
        say_json(ask.to_json())
    else:
        say([f"{ask.what} of {ask.agent}: {'more approvals are needed' if ask.state == 'open' else ask.state}"])
    return Exit.CLEAN


def _declare_try(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("policy", metavar="MODULE:POLICY", help="a policy: a callable, or a `PolicyTable`")
    parser.add_argument("--session", metavar="ID", help="only acts of this session")


def _try(hypervisor: "Hypervisor", args: argparse.Namespace) -> int:
    from troth.runtime.sessions.policy.rehearsal import rehearse

    rehearsal = rehearse(hypervisor.store, find_value(args.policy, "policy"), args.session)
    if args.json:
        say_json(rehearsal.to_json())
    else:
        lines = [
            f"entry {act.entry}: {act.request.agent} {act.request.action} {json.dumps(dict(act.request.arguments))}: "
            f"{act.answer.word}{f' ({act.answer.reason})' if act.answer.reason else ''}"
            for act in rehearsal.differing
        ]
        say([*lines, f"{len(rehearsal.differing)} of {rehearsal.total} recorded acts would not have been allowed."])
    return Exit.FOUND if rehearsal.differing else Exit.CLEAN


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "list": ("list sessions, the newest first", _declare_list, _list),
    "show": ("show one session and its members", _declare_show, _show),
    "kill": ("kill an agent: revoke its membership, stop it, undo its unfinished work", _declare_kill, _kill),
    "terminate": (
        "end a session: cancel and undo unfinished work, and verify the audit trail",
        _declare_terminate,
        _terminate,
    ),
    "asks": ("list the acts that wait for a person", _declare_asks, _asks),
    "answer": ("answer an act that waits: allow or refuse it", _declare_answer, _answer),
    "try": ("show which recorded acts a policy would not have allowed", _declare_try, _try),
}

COMMAND = Command(
    summary="inspect governed sessions, and stop them or their agents",
    description="Inspects governed sessions, and stops them or their agents, including those of a running program.",
    examples=[
        Example("troth session list", "the sessions that are not over"),
        Example("troth session show SESSION --html session.html", "one session as a self-contained page"),
        Example("troth session kill SESSION AGENT", "revoke a membership, and stop the agent"),
        Example("troth session try rules:POLICY", "which recorded acts a policy would not have allowed"),
    ],
    add_arguments=add_arguments,
    run=run,
)
