"""Talk with an agent in the terminal. What ends in the background arrives in the talk."""

import argparse
import contextlib
import inspect
import os
import queue
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json
from troth.cli.stores import add_store, store_of
from troth.errors import MisuseError, TrothError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.channels import Channel, Delivery
    from troth.runtime.conversations import Conversation
    from troth.runtime.store import Event

__all__ = ["COMMAND"]

_END, _CTRL_C = object(), object()
_CLEAR_LINE = (
    "\r" if os.environ.get("TERM", "dumb") == "dumb" else "\r\x1b[K"
)  # of the prompt, before something arrives


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the agent and the conversation."""
    parser.add_argument(
        "agent", metavar="AGENT", help="`module:name` or `file.py:name` of an agent, or of a function of a runtime"
    )
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation (default: a new one)")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Talk until the input ends."""
    from troth.runtime.assemble import Runtime
    from troth.runtime.channels import bind

    source = _find(args.agent)
    with Runtime(store_of(args), in_process=False) as runtime:
        screen = _Screen(is_json=args.json)
        conversation_id = args.conversation or f"c-{uuid.uuid4().hex[:12]}"
        agent = _agent(source, args.agent, runtime)
        conversation = runtime.conversations.open(agent, conversation_id, on_event=[screen.event])
        talk = _Talk(conversation, screen)
        channel = _channel(conversation, talk)
        screen.opened(conversation_id)
        runtime.open_channel(channel)
        try:
            with bind(conversation_id, channel):
                talk.hold()
        finally:
            runtime.close_channel(channel)
        running = [job for job in runtime.jobs.list(session=conversation_id) if not job.is_over]
        screen.closed(args.agent, conversation_id, len(running))
    return Exit.CLEAN


def _find(word: str) -> Any:
    """What `module:name` or `file.py:name` leads to."""
    from troth.runtime.workflows.link.function_lookup import NotFound, find_value

    module, colon, name = word.rpartition(":")
    if not colon or not module or not name:
        raise MisuseError(f"`{word}` names no agent. Nothing was started.\nWrite `module:name` or `file.py:name`.")
    folder, stem = (Path(module).parent, Path(module).stem) if module.endswith(".py") else (Path.cwd(), module)
    try:
        return find_value(stem, name, folder)
    except NotFound as missing:
        raise MisuseError(f"`{word}` names no agent: {missing.what}. {missing.advice}") from None


def _agent(source: Any, word: str, runtime: "Runtime") -> Any:
    """An agent as it is; or what a class, or a function of a runtime or of nothing, makes."""
    if not isinstance(source, type) and (hasattr(source, "step") or hasattr(source, "astep")):
        return source
    if not callable(source):
        raise MisuseError(f"`{word}` is a {type(source).__name__}, not an agent: it has neither `step` nor `astep`.")
    try:
        wants_runtime = bool(inspect.signature(source).parameters)
    except (TypeError, ValueError):
        wants_runtime = False
    return source(runtime) if wants_runtime else source()


class _Screen:
    """What is shown, from any thread."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._is_terminal = sys.stdin.isatty() and not is_json
        self._lock = threading.Lock()
        self._is_asking = False

    def opened(self, conversation_id: str) -> None:
        if self._is_json:
            say_json({"conversation": conversation_id}, indent=None)
        elif self._is_terminal:
            say([f"conversation {conversation_id} (Ctrl-C interrupts the agent, Ctrl-D quits)"])

    def closed(self, agent: str, conversation_id: str, jobs: int) -> None:
        if self._is_json or not self._is_terminal:
            return
        still_running = f"{jobs} {'job keeps' if jobs == 1 else 'jobs keep'} running. " if jobs else ""
        say(["", f"{still_running}`troth chat {agent} --conversation {conversation_id}` continues the conversation."])

    def ask(self) -> None:
        with self._lock:
            self._is_asking = True
            self._prompt()

    def _prompt(self) -> None:
        if self._is_terminal and self._is_asking:
            sys.stdout.write("> ")
            sys.stdout.flush()

    def heard(self, *, is_typed: bool) -> None:
        with self._lock:
            if self._is_asking and self._is_terminal and not is_typed:
                sys.stdout.write(_CLEAR_LINE)  # the prompt that nobody has answered
            self._is_asking = False

    def event(self, event: "Event") -> None:
        """What the agent has said."""
        if event.kind == "message" and event.payload.get("role") == "assistant" and event.payload.get("text"):
            self.show("assistant", event.payload["text"])

    def show(self, role: str, text: str, **more: Any) -> None:
        with self._lock:
            if self._is_json:
                say_json({"role": role, "text": text, **more}, indent=None)
                return
            mark = {"assistant": "", "delivery": "* ", "problem": "! "}[role]
            if self._is_asking and self._is_terminal:
                sys.stdout.write(_CLEAR_LINE)
            say([f"{mark}{text}"])
            self._prompt()


class _Talk:
    """Lines of the user and news from the background, one after the other."""

    def __init__(self, conversation: "Conversation", screen: _Screen) -> None:
        self._conversation = conversation
        self._screen = screen
        self._inbound: queue.SimpleQueue[object] = queue.SimpleQueue()
        events = conversation.events()
        self._logged_ids = {event.payload.get("id") for event in events if event.kind == "agent.delivery"}
        self._shown_ids: set[str] = set()

    def arrived(self, delivery: "Delivery") -> str:
        """For the channel: put a delivery into the talk; answers where it stands. Once for each id.

        One that is in the log already, and is sent all the same, was put there by a program that died before it could
        say so: nobody may have seen it, so it is shown here, too.
        """
        if delivery.id not in self._logged_ids:
            entry = ("agent.delivery", {"id": delivery.id, "promise": delivery.promise, "kind": delivery.kind})
            self._conversation.send(delivery.text, role="system", with_events=[entry])
            self._logged_ids.add(delivery.id)
        if delivery.id not in self._shown_ids:
            self._shown_ids.add(delivery.id)
            self._screen.show("delivery", delivery.text, id=delivery.id)
            self._inbound.put(delivery)
        return delivery.id

    def hold(self) -> None:
        """Talk until the input ends."""
        threading.Thread(target=self._read, name="troth-chat-input", daemon=True).start()
        before = signal.signal(signal.SIGINT, lambda *_: self._inbound.put(_CTRL_C))
        try:
            while True:
                self._screen.ask()
                inbound = self._inbound.get()
                self._screen.heard(is_typed=isinstance(inbound, str) or inbound is _END)
                if inbound is _END:
                    return
                if inbound is _CTRL_C:
                    self._screen.show("problem", "Nothing is running here. Ctrl-D quits.")
                else:
                    self._turn(inbound)
        finally:
            signal.signal(signal.SIGINT, before)

    def _turn(self, inbound: object) -> None:
        """Let the agent answer what has come in. Only here does Ctrl-C interrupt anything."""
        try:
            if isinstance(inbound, str) and inbound.strip():
                self._conversation.send(inbound)
            if self._conversation.look().has_news:
                with _interruptible():
                    self._conversation.run()
        except KeyboardInterrupt:
            self._screen.show("problem", "Interrupted. Jobs keep running; Ctrl-D quits.")
        except TrothError as problem:
            self._screen.show("problem", str(problem))
        except BaseException as error:  # noqa: BLE001  the agent's own, which was recorded: `sys.exit()` ends no talk
            self._screen.show("problem", f"The agent failed: {type(error).__name__}: {error}")

    def _read(self) -> None:
        for line in sys.stdin:
            self._inbound.put(line.rstrip("\n"))
        self._inbound.put(_END)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _channel(conversation: "Conversation", talk: _Talk) -> "Channel":
    from troth.runtime.channels import Capability, Channel, Delivery, Receipt

    class ChatChannel(Channel):
        """The talk itself: what is delivered is an entry of the conversation's log."""

        name = f"chat:{conversation.id}"
        capability = Capability.PUSH

        def send(self, delivery: Delivery) -> Receipt:
            """Put it into the talk."""
            if delivery.session != conversation.id:
                return Receipt.refused("it belongs to another conversation")
            return Receipt.done(talk.arrived(delivery))

    return ChatChannel()


COMMAND = Command(
    summary="talk with an agent; background work reports back",
    description=(
        "Talks with an agent in the terminal, durably. Results of background work arrive in the conversation, even "
        "if the work ended while it was closed. Ctrl-C interrupts the agent, not its jobs; Ctrl-D quits."
    ),
    examples=(
        Example("troth chat agents:helper", "talk with the agent `helper` of the module `agents`"),
        Example("troth chat agents.py:helper --conversation c-12ab", "continue an earlier conversation"),
    ),
    add_arguments=add_arguments,
    run=run,
)
