"""`--html` of conversations, deliveries and sessions: one file without scripts, in which hostile content is text."""

import json
from html.parser import HTMLParser

import pytest

from troth.cli import app
from troth.runtime import Conversations, Runtime
from troth.runtime.agents import Agent
from troth.runtime.sessions import Hypervisor
from troth.runtime.store import commit_point
from troth.runtime.store.rows.sessions import FileRow

POINT = commit_point("test.html", "whatever a test writes")

HOSTILE = [
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "</pre></table><h1>mine</h1>",
    "javascript:alert(1) http://evil.example/",
    "left \u202e to right \u2066 and \x1b[31m back \x00",
    "line\nbreak\tand tab &amp; &lt;b&gt;",
    "x" * 50_000,
]
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "span", "div", "table", "tr", "td", "th"),
    *("pre", "br", "b"),
}


class Page(HTMLParser):
    """The elements of a page, their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes, self.words, self.depth = set(), set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_STORE", str(tmp_path / "troth.db"))

    def run(*argv):
        code = app.run(argv)
        return code, *capsys.readouterr()

    return run


class Echo(Agent):
    def step(self, conversation):
        conversation.say(conversation.messages()[-1].text)


def echo(prompt: str) -> str:
    return prompt


def talk(path, text):
    with Conversations(path) as home:
        conversation = home.open(Echo(), "talk")
        conversation.send(text)
        conversation.run()
    return "conversations", "talk"


def promised(path, text):
    with Runtime(path, in_process=False) as runtime:
        promise = runtime.promises.start(echo, prompt=text).promise
        promise.wait(60)
    return "outbox", f"{promise.id}-done-1"


def governed(path, text):
    with Hypervisor(path) as hypervisor:
        session = hypervisor.create("ann")
        hypervisor.join(session, "bob", score=0.99)
        hypervisor.activate(session)
        note = FileRow("/notes/a", text, "bob", None, None, 1.0)
        hypervisor.store.commit(POINT, lambda tx: tx.sessions.put_file(session.id, note))
        hypervisor.kill(session, "bob", reason=text[:200])
    return "session", session.id


@pytest.mark.parametrize("text", HOSTILE, ids=["script", "attribute", "end tags", "links", "bidi", "entities", "long"])
@pytest.mark.parametrize("make", [talk, promised, governed])
def test_hostile_content_is_text(troth, tmp_path, make, text):
    """No element, no attribute and no address of it gets into the page."""
    command, thing = make(tmp_path / "troth.db", text)
    code, out, _ = troth(command, "show", thing, "--html", "-")
    assert code == 0
    page = Page(out)
    assert page.names <= ALLOWED
    assert page.attributes <= {"lang", "charset", "name", "content", "class", "scope"}
    shown = "".join(page.words)
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert text[:20].partition("\u202e")[0] in shown


@pytest.mark.parametrize("make", [talk, promised, governed])
def test_nothing_is_on_the_page_that_json_does_not_have(troth, tmp_path, make):
    """Every number and every quoted word of the page is a label of ours, a time, or in `--json`."""
    command, thing = make(tmp_path / "troth.db", "a rare word: Ytterbium")
    whole = troth(command, "show", thing, "--json")[1]
    page = Page(troth(command, "show", thing, "--html", "-")[1])
    assert json.loads(whole)
    assert any("Ytterbium" in word for word in page.words)
    for value in leaves(json.loads(whole)):
        if isinstance(value, str) and value == thing:
            assert thing in "".join(page.words)
    texts = {str(value) for value in leaves(json.loads(whole))}
    cells = [word.strip() for word in page.words if "Ytterbium" in word]
    assert all(any(cell.strip("→ ") in text or text in cell for text in texts) for cell in cells)


def leaves(value):
    if isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)
    else:
        yield value


def test_a_page_goes_to_a_file(troth, tmp_path):
    """It says where; a folder that is not there is told with a sentence."""
    command, thing = talk(tmp_path / "troth.db", "hello")
    code, out, _ = troth(command, "show", thing, "--html", "talk.html")
    assert (code, out) == (0, "wrote talk.html\n")
    assert (tmp_path / "talk.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    code, _, err = troth(command, "show", thing, "--html", "nowhere/talk.html")
    assert (code, "cannot be written" in err) == (2, True)


def test_lists_go_page_by_page(troth, tmp_path):
    """Each page says which command shows the next one, and the pages have everything once."""
    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        promises = [runtime.promises.start(echo, prompt=str(number)).promise for number in range(3)]
        for promise in promises:
            promise.wait(60)
    with Conversations(tmp_path / "troth.db") as home:
        for number in range(3):
            home.open(Echo(), f"talk-{number}")
    for command, first in (("outbox list", f"{promises[-1].id}-done-1"), ("conversations list", "talk-2")):
        shown, words = [], (*command.split(), "--limit", "1")
        while words:
            code, out, err = troth(*words)
            assert code == 0
            shown.append(out.split()[0])
            words = err.partition("There are more: troth ")[2].replace("'", "").split()
        assert (shown[0], len(shown), len(set(shown))) == (first, 3, 3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("runs", "list", "--before", "nonsense"), "not a cursor", id="a cursor"),
        pytest.param(("runs", "list", "--since", "soon"), "is not a point in time", id="a moment"),
        pytest.param(("runs", "list", "--limit", "5000"), "1000 or less", id="too many"),
        pytest.param(("session", "list", "--state", "gone"), "There is no state 'gone'", id="a state"),
    ],
)
def test_what_cannot_be_listed(troth, tmp_path, words, says):
    """Said with a sentence."""
    talk(tmp_path / "troth.db", "hello")
    code, _, err = troth(*words)
    assert (code, says in err) == (2, True), err


def test_runs_are_filtered(troth, tmp_path):
    """By workflow, time and text."""
    from troth.runtime import Workflow, step

    with Runtime(tmp_path / "troth.db") as runtime:
        for name in ("pack", "ship"):
            runtime.run(Workflow(name, step("a", function=int)), run_id=f"{name}-1")
    assert [run["id"] for run in json.loads(troth("runs", "list", "--workflow", "ship", "--json")[1])] == ["ship-1"]
    assert [run["id"] for run in json.loads(troth("runs", "list", "--text", "PACK", "--json")[1])] == ["pack-1"]
    assert len(json.loads(troth("runs", "list", "--since", "1h", "--json")[1])) == 2
    assert json.loads(troth("runs", "list", "--until", "2020-01-01", "--json")[1]) == []
