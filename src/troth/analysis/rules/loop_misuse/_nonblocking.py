"""Decide whether a call that can hold the loop up waits for nobody, by what it is told and by what stands around it."""

from __future__ import annotations

import ast
import ipaddress
import re
from typing import TYPE_CHECKING

from troth.analysis.facts.nodes import of_kind
from troth.analysis.rules.loop_misuse.waiting_for_own_loop import waits_for_own_loop
from troth.analysis.semantics.infer.call_graph import names_of

if TYPE_CHECKING:
    from troth.analysis.knowledge.semantics import Blocking
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

__all__ = ["is_perhaps_done", "takes_no_time"]

_NONBLOCKING = re.compile(
    r"setblocking\(|BlockingIOError|settimeout\(0|SOCK_NONBLOCK|EWOULDBLOCK|add_reader\(|add_writer\(|def connection_made"
)
_BINDING = re.compile(r"(?i)bind|listen")
_FLAGS = re.compile(r"\b(?:\w+\.)?\w*(?:NOHANG|DONTWAIT|NONBLOCK|LOCK_NB|NOWAIT)\b")  # of the system: do not wait
_SETTLING = ("empty", "qsize", "kill", "is_alive", "poll")  # who asks or says so first does not wait afterwards
_LOOKUPS = frozenset({"getaddrinfo", "getnameinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"})


def takes_no_time(program: Program, call: Call, found: Blocking) -> bool:
    """Whether the call says itself that it does not wait: `sleep(0)`, `get(block=False)`."""
    base, _, name = call.text.rpartition(".")
    facts = call.caller.facts
    if any(f"{base}.{question}" in facts.calls for question in _SETTLING):
        return True
    if found.waits_for == "subprocess" and any(c.endswith(".poll") for c in facts.awaited):
        return True
    if name == "join" and _was_awaited_meanwhile(call):
        return True
    if found.waits_for == "lock" and name == "acquire" and base and _is_new(call):
        return True
    if name in _LOOKUPS and _BINDING.search(call.caller.name):
        return True  # the host's own addresses are asked of nobody
    if name == "put" and found.waits_for == "queue":
        return True  # most queues have no bound, and then nobody waits
    if any("socket.socket." in path for path in names_of(call.callee)) and (
        _is_nonblocking(program, call) or _is_datagram(program, call)
    ):
        return True
    return bool(call.node[2] or call.node[3]) and _is_told_so(program, call, found)


def _is_told_so(program: Program, call: Call, found: Blocking) -> bool:
    """Whether the arguments of a call say that it does not wait."""
    try:
        tree = ast.parse(program.text(call.caller.module.path).cut(*call.at), mode="eval").body
    except SyntaxError:  # a call over several lines of a notebook, say
        return False
    if not isinstance(tree, ast.Call):
        return False
    name = call.text.rpartition(".")[2]
    arguments = {str(position): value for position, value in enumerate(tree.args)}
    arguments |= {keyword.arg: keyword.value for keyword in tree.keywords if keyword.arg}
    if name in _LOOKUPS and any(_is_numeric(value) for value in arguments.values()):
        return True
    if any(_FLAGS.search(ast.unparse(value)) for value in arguments.values() if not isinstance(value, ast.Constant)):
        return True
    off = [value.value for key, value in arguments.items() if key in found.unless and isinstance(value, ast.Constant)]
    last = arguments.get("3")
    if name == "select" and isinstance(last, ast.Constant) and last.value == 0:
        return True
    first = arguments.get("0")
    is_zero = found.waits_for == "sleep" and isinstance(first, ast.Constant) and first.value == 0
    return is_zero or any(value is False for value in off)


def _is_new(call: Call) -> bool:
    """Whether the function made the lock itself, so that nobody else can have it."""
    lock = call.node[1][1]
    return any(
        statement[2][0] == "call" and lock in statement[1] for statement in of_kind(call.caller.body(), "assign")
    )


def _was_awaited_meanwhile(call: Call) -> bool:
    """A thread that the function started itself, and awaited something since: it is joined when its work is over."""
    facts = call.caller.facts
    return bool(facts.awaited) and f"{call.text.rpartition('.')[0]}.start" in facts.calls


def is_perhaps_done(call: Call) -> bool:
    """Whether a future's result may be there already: one that is kept for long, or was asked or waited for before."""
    if any(node[-1] == call.at for node, _ in waits_for_own_loop(call.caller.facts)):
        return True  # worse than blocking: the rule about the own loop tells of it
    receiver = call.node[1][1] if call.node[1][0] == "attr" else call.node[1]
    is_asked_for = any(
        callee.rpartition(".")[2] in {"done", "wait", "as_completed"} for callee in call.caller.facts.calls
    )
    return (
        receiver[0] not in {"name", "call"} or is_asked_for or bool(call.caller.facts.awaited and receiver[0] == "name")
    )


def _is_nonblocking(program: Program, call: Call) -> bool:
    """Whether the file speaks of sockets that do not block; which of them do cannot be seen at the call."""
    return _NONBLOCKING.search(program.text(call.caller.module.path).value) is not None


def _is_datagram(program: Program, call: Call) -> bool:
    """Whether a socket for datagrams only notes whom it will speak to, or hands one over: it waits for nobody."""
    name = call.text.rpartition(".")[2]
    if name not in {"connect", "connect_ex", "send"}:
        return name == "sendto"  # only datagrams have an address of their own
    return "SOCK_DGRAM" in program.text(call.caller.module.path).cut(*call.caller.facts.at)


def _is_numeric(value: ast.expr) -> bool:
    """Whether a name lookup is told to ask nobody: by a flag, or because it is given a number or nothing to look up."""
    if any(isinstance(n, ast.Name | ast.Attribute) and "NUMERIC" in ast.unparse(n) for n in ast.walk(value)):
        return True
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return any(isinstance(p, ast.Constant) and isinstance(p.value, str) and _is_address(p.value) for p in parts)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True
