"""Runs the code blocks of one documentation page, in order, and fails at the first that does not do as it says.

Called as a program, one page per process: `page.py PAGE`. The rules, for the writer of a page:

- A `python` block is executed; all of a page share one namespace.
- A `shell` block is run by bash and has to succeed. A `console` block holds commands after `$ `; the lines between
  them are expected in the output, in that order, and a line `...` stands for any others.
- `<!-- exit: 1 -->` above a block expects that exit code of its last command.
- `<!-- file: NAME -->` above a block of any language writes the block to NAME instead of running it.
- `<!-- not run: REASON -->` above a block leaves it alone; `test_examples.py` counts these.

A page that writes files, or has only Python, runs in a folder of its own; any other in the root of the repository.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = {"python", "shell", "bash", "sh", "console"}
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[\w+-]*)[^\n]*$")
MARK = re.compile(r"^ *<!-- (?P<key>exit|file|not run): (?P<value>.+?) -->$")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line its text starts at, and the marks above it."""

    language: str
    text: str
    line: int
    marks: dict[str, str]

    @property
    def runs(self) -> bool:
        return self.language in RUN and "not run" not in self.marks and "file" not in self.marks


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    marks: dict[str, str] = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if mark := MARK.match(line):
            marks[mark["key"]] = mark["value"]
        elif opened := FENCE.match(line):
            body: list[str] = []
            for _, inner in lines:
                if inner.strip() == opened["fence"]:
                    break
                body.append(inner[len(opened["indent"]) :])
            found.append(Block(opened["language"], "\n".join(body) + "\n", number + 1, marks))
            marks = {}
        elif line.strip():
            marks = {}
    return found


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> None:
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    exec(code, namespace)


def bash(command: str, expected: int, place: str) -> str:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if done.returncode != expected:
        sys.exit(f"{place}: `{command.strip()}` ended with {done.returncode}, not {expected}\n{done.stdout}")
    return done.stdout


def run_console(block: Block, page: Path) -> None:
    last = int(block.marks.get("exit", "0"))
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    for number, part in enumerate(parts, 1):
        lines = part.splitlines()
        command = lines.pop(0)
        while command.endswith("\\"):
            command = command[:-1] + lines.pop(0)
        place = f"{page}:{block.line}"
        output = bash(command, last if number == len(parts) else 0, place)
        printed = iter(output.splitlines())
        for line in lines:
            if line.strip() in ("...", ""):
                continue
            if not any(line.rstrip() == other.rstrip() for other in printed):
                sys.exit(
                    f"{place}: after `{command}` this line is not in the output:\n{line}\n--- output ---\n{output}"
                )


def main(page: Path) -> None:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    writes = any("file" in block.marks for block in blocks)
    own_folder = writes or all(block.language == "python" for block in blocks if block.runs)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder if own_folder else ROOT)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        namespace: dict[str, object] = {"__name__": "__main__"}
        for block in blocks:
            if "file" in block.marks and "not run" not in block.marks:
                target = Path(block.marks["file"])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
            elif not block.runs:
                continue
            elif block.language == "python":
                run_python(block, page, namespace)
            elif block.language == "console":
                run_console(block, page)
            else:
                print(bash(block.text, int(block.marks.get("exit", "0")), f"{page}:{block.line}"))
        os.chdir(ROOT)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
