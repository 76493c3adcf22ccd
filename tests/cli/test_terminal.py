"""What reaches a terminal, a pipe and a log."""

import io

import pytest

from troth.cli.switches import switch
from troth.cli.terminal import Progress, Style, wants_color
from troth.errors import MisuseError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "colored"),
    [
        pytest.param(Terminal(), {}, True, id="terminal"),
        pytest.param(io.StringIO(), {}, False, id="pipe"),
        pytest.param(Terminal(), {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param(Terminal(), {"NO_COLOR": ""}, True, id="NO_COLOR is empty, so not set"),
        pytest.param(Terminal(), {"TERM": "dumb"}, False, id="dumb terminal"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, True, id="FORCE_COLOR"),
        pytest.param(Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="both: no color"),
    ],
)
def test_color_is_for_terminals_that_want_it(stream, environ, colored):
    """A pipe gets plain text, and `NO_COLOR` is always honoured."""
    assert wants_color(stream, environ) is colored


def test_plain_text_holds_no_escape_byte(monkeypatch):
    """The same text with and without color, but for the color."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Style(io.StringIO())("lost", "red", "bold") == "lost"
    assert Style(Terminal())("lost", "red", "bold") == "\x1b[31;1mlost\x1b[0m"


def test_progress_is_silent_in_a_log():
    """Not one byte reaches a stream that is no terminal."""
    log = io.StringIO()
    with Progress("reading", total=3, stream=log) as progress:
        progress.at(2)
    assert log.getvalue() == ""


def test_progress_wipes_its_line(monkeypatch):
    """On a terminal it counts, fits the width, and leaves nothing behind."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    screen = Terminal()
    with Progress("reading", total=300, stream=screen) as progress:
        progress.at(200, "a/very/long/path/to/a/file.py")
    assert "reading 200/300" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")
    assert max(len(part) for part in screen.getvalue().split("\r\x1b[2K")) < 20


def test_progress_tells_the_phase(monkeypatch):
    """Which file is read, and then that they are checked, which may take as long."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    screen = Terminal()
    with Progress("reading", total=1000, stream=screen) as progress:
        for number in range(400):
            progress.reading(number, 400, f"file{number}.py")
        progress.reading(400, 400, "")
    parts = [part for part in screen.getvalue().split("\r\x1b[2K") if part]
    assert parts[:3] == ["reading 0/1000", "reading 0/400  file0.py", "reading 25/400  file25.py"]
    assert len(parts) == 18
    assert parts[-1] == "checking  400 files"


def test_progress_of_few_files(monkeypatch):
    """Each is named: it may be large. Where nothing had to be read, only the second phase is shown."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    screen = Terminal()
    with Progress("reading", total=2, stream=screen) as progress:
        progress.reading(1, 2, "large.py")
        progress.reading(0, 0, "")
    assert screen.getvalue().split("\r\x1b[2K")[2:] == ["reading 1/2  large.py", "checking", ""]


@pytest.mark.parametrize(
    ("value", "on"),
    [(word, True) for word in ("1", "yes", "true", "on", "YES", " True ")]
    + [(word, False) for word in ("0", "no", "false", "off", "No", "")],
)
def test_switches_of_the_environment(value, on):
    """Everybody's way of writing yes and no is understood."""
    assert switch("TROTH_TRIAL", environ={"TROTH_TRIAL": value}) is on


def test_an_unset_switch_is_its_default():
    """Unset is not the same as off."""
    assert switch("TROTH_TRIAL", environ={}, default=True) is True


def test_an_unreadable_switch_is_refused():
    """A guess here would be silent, so the value and both ways to write it are named."""
    with pytest.raises(MisuseError, match=r"`TROTH_TRIAL` is 'maybe'(.|\n)*1, yes, true or on"):
        switch("TROTH_TRIAL", environ={"TROTH_TRIAL": "maybe"})
