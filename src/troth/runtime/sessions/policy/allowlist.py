"""Judge commands and paths by what they really are: a command after parsing, a path after resolving.

An allowlist: what cannot be understood is refused. It says what the runtime agrees to start on an agent's behalf; it is
no sandbox for what was started.
"""

import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from troth.errors import MisuseError

__all__ = ["check_paths", "problem_of_command", "problem_of_path", "split_commands"]

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_CHAINS = frozenset({";", "&", "&&", "|", "||", "|&", "\n"})
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "sudo": frozenset({"-u", "--user", "-g", "--group", "-h", "-p", "-C", "-D", "-R", "-T", "-U"}),
    "doas": frozenset({"-u", "-C"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n", "--class", "--classdata"}),
    "timeout": frozenset({"-k", "--kill-after", "-s", "--signal"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}),
    "time": frozenset({"-f", "-o", "--format", "--output"}),
    "xargs": frozenset({"-I", "-n", "-P", "-L", "-s", "-d", "-a", "-E"}),
    "command": frozenset(),
    "exec": frozenset({"-a"}),
    "busybox": frozenset(),
}
"""Programs that start another one, and which of their options take a value of their own."""
_LEADING = {"timeout": 1}  # arguments that come before the command
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SUBSTITUTIONS = ("$(", "`", "${", "<(", ">(", "$'", '$"')
_DEEPEST = 8


def problem_of_command(command: object, allowed: Sequence[str]) -> str | None:
    """Why a command is not allowed; nothing if it is. `allowed` are programs, or programs with their first words.

    `git` allows every use of git, `git status` only what begins so. A program that is named by a path is allowed by
    that very path alone. Every command of a chain, behind every wrapper and inside `sh -c`, has to be allowed.
    """
    try:
        commands = [command_words] if (command_words := _as_words(command)) else split_commands(_as_text(command))
        programs = [words for command_text in commands for words in _unwrapped(command_text, 0)]
    except MisuseError as problem:
        return str(problem)
    if not programs:
        return "it contains no command"
    rows = [shlex.split(row) for row in allowed]
    for words in programs:
        if not any(_fits(words, row) for row in rows):
            return f"{shlex.join(words[:2])!r} is not an allowed command"
    return None


def _as_words(command: object) -> list[str] | None:
    if isinstance(command, list | tuple):
        if command and all(isinstance(word, str) for word in command):
            return list(command)
        raise MisuseError("it is a list that is empty, or has items that are not strings")
    return None


def _as_text(command: object) -> str:
    if not isinstance(command, str):
        raise MisuseError(f"{command!r} is not a command")
    return command


def split_commands(text: str) -> list[list[str]]:
    """The commands of a shell's line, each as its words. `MisuseError` for what only a shell could tell."""
    if "\0" in text:
        raise MisuseError("it contains a NUL character")
    if any(mark in text for mark in _SUBSTITUTIONS):
        raise MisuseError("only the shell knows what it substitutes")
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError as problem:
        raise MisuseError(f"it cannot be parsed ({problem})") from None
    commands: list[list[str]] = [[]]
    for token in tokens:
        if token in _CHAINS:
            commands.append([])
        elif set(token) <= set("<>&|") and set(token) & set("<>"):
            raise MisuseError("it redirects, and the files it writes or reads are not checked")
        elif set(token) <= set(";&|()"):
            raise MisuseError(f"{token!r} is more than a chain of commands")
        else:
            commands[-1].append(token)
    return [words for words in commands if words]


def _unwrapped(words: list[str], depth: int) -> list[list[str]]:
    """The commands that are really started."""
    if depth > _DEEPEST:
        raise MisuseError("it is nested too deeply")
    words = list(words)
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if not words:
        raise MisuseError("it only sets variables")
    program = words[0]
    if "$" in program or any(mark in program for mark in "*?[{~"):
        raise MisuseError(f"only the shell knows what {program!r} expands to")
    name = posixpath.basename(program)
    if name in _SHELLS:
        return _of_shell(words, depth)
    if name in ("eval", "source", "."):
        raise MisuseError(f"only the shell knows what {name!r} does")
    if name not in _WRAPPERS:
        return [words]
    return _unwrapped(_behind(name, words[1:]), depth + 1)


def _behind(name: str, words: list[str]) -> list[str]:
    """What a wrapper starts."""
    valued = _WRAPPERS[name]
    leading = _LEADING.get(name, 0)
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if name == "env" and word in ("-S", "--split-string"):
            return shlex.split(words[at + 1]) + words[at + 2 :] if at + 1 < len(words) else []
        if name == "env" and word.startswith(("-S", "--split-string=")):
            raise MisuseError("what `env -S` starts cannot be determined")
        if word.startswith("-") and word != "-":
            at += 2 if word in valued else 1
        elif (name in ("env", "sudo") and _ASSIGNMENT.match(word)) or word == "-":
            at += 1
        elif leading:
            leading -= 1
            at += 1
        else:
            break
    if at >= len(words):
        raise MisuseError(f"{name!r} has no command to start")
    return words[at:]


def _of_shell(words: list[str], depth: int) -> list[list[str]]:
    """The commands of `sh -c '…'`; a script, or a shell that reads its input, cannot be judged."""
    for at, word in enumerate(words[1:], start=1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            if at + 1 >= len(words):
                break
            return [
                inner
                for inner_command in split_commands(words[at + 1])
                for inner in _unwrapped(inner_command, depth + 1)
            ]
        if not word.startswith("-"):
            break
    raise MisuseError(f"what {words[0]!r} runs cannot be determined; only its `-c` can")


def _fits(words: Sequence[str], row: Sequence[str]) -> bool:
    if len(words) < len(row):
        return False
    return words[0] == row[0] and list(words[1 : len(row)]) == list(row[1:])


def problem_of_path(path: object, roots: Iterable[str]) -> str | None:
    """Why a path is not allowed; nothing if it lies in one of `roots`. Links and `..` are resolved before."""
    if not isinstance(path, str) or not path or "\0" in path:
        return f"{path!r} is not a path"
    real = os.path.realpath(path)
    for root in roots:
        top = os.path.realpath(root)
        if real == top or real.startswith(top.rstrip(os.sep) + os.sep):
            return None
    return f"{path!r} is {real!r}, which is not in an allowed folder"


def check_paths(roots: Iterable[object]) -> tuple[str, ...]:
    """The roots, if each is an absolute path."""
    values = []
    for root in roots:
        if not isinstance(root, str) or not Path(root).is_absolute():
            raise MisuseError(f"{root!r} is not an absolute path, so its content is unclear.")
        values.append(root)
    return tuple(values)
