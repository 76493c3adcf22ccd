"""Draw what a terminal shows as a picture: a finding, as `troth check` prints it."""

import contextlib
import html
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["as_picture", "write_finding"]

_PROJECT = Path(__file__).resolve().parents[2] / "examples" / "agent_service"
_COMMAND = ("check", "--select", "TR104", "--no-cache", "--color", "always")
_COLUMNS = 92
_SIZE, _LINE, _WIDTH, _MARGIN = 14, 20, 8.43, 18  # pixels: letters, lines, a letter's width, the frame
_BACKGROUND, _PLAIN = "#1c1e26", "#e6e6e6"
_STYLES = {
    "1": 'font-weight="bold"',
    "2": 'fill="#9aa0ac"',
    "31": 'fill="#ff7b72"',
    "32": 'fill="#7ee787"',
    "33": 'fill="#e3b341"',
    "36": 'fill="#79c0ff"',
}
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")


def write_finding(path: Path) -> None:
    """Write the picture of the finding that the start page shows, if it is another one than before."""
    picture = as_picture(f"$ troth check\n{_on_a_terminal([sys.executable, '-m', 'troth', *_COMMAND]).strip()}")
    if not path.exists() or path.read_text(encoding="utf-8") != picture:
        path.parent.mkdir(exist_ok=True)
        path.write_text(picture, encoding="utf-8")


def _on_a_terminal(command: list[str]) -> str:
    """What a command prints on a terminal, where it breaks long lines and uses colors."""
    ours, its_own = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, cwd=_PROJECT, env=environment, stdout=its_own, stderr=subprocess.DEVNULL)
    os.close(its_own)
    shown = b""
    with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # it ends with an error  # noqa: PTH123
        while chunk := terminal.read(1 << 16):
            shown += chunk
    process.wait()
    return shown.decode().replace("\r\n", "\n")


def as_picture(text: str) -> str:
    """The text with its colors, as an SVG. Those who cannot see it read the text itself."""
    lines = text.splitlines()
    plain = [_ESCAPE.sub("", line) for line in lines]
    width = round(max(map(len, plain)) * _WIDTH + 2 * _MARGIN)
    height = len(lines) * _LINE + 2 * _MARGIN
    rows = [
        f'<text x="{_MARGIN}" y="{_MARGIN + _SIZE + number * _LINE}">{"".join(_spans(line))}</text>'
        for number, line in enumerate(lines)
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{_SIZE}" '
        f'fill="{_PLAIN}" xml:space="preserve">'
    )
    described = f"<title>{html.escape(chr(10).join(plain))}</title>"
    frame = f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>'
    return "\n".join([head, described, frame, *rows, "</svg>", ""])


def _spans(line: str) -> Iterator[str]:
    """The pieces of a line, each in the style that the escapes before it have set."""
    styles: list[str] = []
    pieces = _ESCAPE.split(line)
    for number, piece in enumerate(pieces):
        if number % 2:  # a piece between two texts: the codes of an escape
            codes = piece.split(";")
            styles = [] if codes in (["0"], [""]) else [*styles, *(_STYLES[code] for code in codes if code in _STYLES)]
        elif piece:
            text = html.escape(piece)
            yield f"<tspan {' '.join(dict.fromkeys(styles))}>{text}</tspan>" if styles else text
