"""The programs that people brought to other checkers: each is seen, explained and repaired in the editor.

They are those of the page that puts them to other tools, in `bench/beside/threads.py`.
"""

import pytest
from bench.beside.threads import THREADS
from tests.lsp.client import PULL, Client, edited

NOT_A_CALL_THAT_IS_LOST = ("mypy #13589",)  # a future: its work goes on, whoever awaits it
NO_REPAIR = ("pytest-mock #374",)  # whether to schedule a task, or another function, only its author can say
HEAD = "import asyncio\n\n\nasync def fetch(url) -> int:\n    await asyncio.sleep(0)\n    return len(url)\n\n\n"


def threads():
    for name, text in THREADS.items():
        short = name.partition("]")[0].removeprefix("[")
        if short not in NOT_A_CALL_THAT_IS_LOST:
            yield pytest.param(text, short not in NO_REPAIR, id=short)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "app.py").write_text("")
    with Client(folder, PULL) as client:
        client.open("app.py")
        yield client


def items_on(client, line):
    return [item for item in client.pull("app.py") if item["range"]["start"]["line"] == line]


@pytest.mark.parametrize(("text", "has_repair"), list(threads()))
def test_seen_explained_and_repaired(client, text, has_repair):
    """The line has one diagnostic with its reason, hover says the same, and an action takes the loss away."""
    line = next(number for number, row in enumerate(text.splitlines()) if row.endswith("# lost"))
    client.change("app.py", text)
    (item,) = items_on(client, line)
    place = item["range"]["start"]["character"]
    hover = client.at("textDocument/hover", "app.py", line, place)["contents"]["value"]
    reasons = [reason["message"] for reason in item.get("relatedInformation", ())]
    assert "\n- because " in hover
    assert all(reason in hover for reason in reasons)
    assert reasons or "\nbecause " in item["message"]
    actions = client.actions("app.py", (line, place), diagnostics=[item])
    repairs = [one for one in actions if f"({item['code']})" in one["title"]]
    assert bool(repairs) is has_repair
    if repairs:
        (document,) = repairs[0]["edit"]["documentChanges"]
        client.change("app.py", edited(text, document["edits"]))
        assert client.pull("app.py") == []
    else:
        assert any(one["title"].startswith("Allow") for one in actions)


def test_in_a_plain_function(client):
    """There no `await` can be written: the function changes its color, or runs the coroutine."""
    client.change("app.py", HEAD + "def main():\n    fetch('a')\n")
    (item,) = items_on(client, 9)
    titles = [one["title"] for one in client.actions("app.py", (9, 4), diagnostics=[item])]
    assert "Make `main` async …" in titles
    assert "Run it here with `bridge.run` (TR101)" in titles
