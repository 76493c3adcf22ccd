"""The programs that people brought to other checkers, in words of our own: each is seen, explained and repaired."""

import pytest
from tests.lsp.client import PULL, Client, edited

HEAD = "import asyncio\n\n\nasync def fetch(url) -> int:\n    await asyncio.sleep(0)\n    return len(url)\n\n\n"
CASES = [
    pytest.param(
        "async def main():\n    fetch('a')  # here\n", "await fetch('a')", id="ruff 9833: the value is dropped"
    ),
    pytest.param(
        "async def main():\n    size = fetch('a')  # here\n    return 1\n",
        "size = await fetch('a')",
        id="mypy 2499: assigned and never awaited",
    ),
    pytest.param(
        "async def main():\n    _ = fetch('a')  # here\n",
        "_ = await fetch('a')",
        id="pyright 3563: assigned to an underscore",
    ),
    pytest.param(
        "async def main():\n    if fetch('a'):  # here\n        return 1\n",
        "if await fetch('a'):",
        id="ty 2791: tested for truth",
    ),
    pytest.param(
        "async def main():\n    print(fetch('a'))  # here\n",
        "print(await fetch('a'))",
        id="pyrefly 639: passed on as a result",
    ),
    pytest.param(
        "async def main():\n    return fetch('a') + 1  # here\n",
        "return await fetch('a') + 1",
        id="basedpyright 1547: used in an operation",
    ),
    pytest.param(
        "async def main():\n    [fetch(u) for u in 'ab']  # here\n", None, id="pylint 8870: dropped by a comprehension"
    ),
    pytest.param("def main():\n    fetch('a')  # here\n", None, id="mypy 2499: in a plain function"),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "app.py").write_text("")
    with Client(folder, PULL) as client:
        client.open("app.py")
        yield client


@pytest.mark.parametrize(("body", "repaired"), CASES)
def test_seen_explained_and_repaired(client, body, repaired):
    """The line has a diagnostic with its reason, hover says why, and an action repairs it or changes the color."""
    text = HEAD + body
    line = next(number for number, one in enumerate(text.split("\n")) if one.endswith("# here"))
    client.change("app.py", text)
    (item,) = [one for one in client.pull("app.py") if one["range"]["start"]["line"] == line]
    assert any("`fetch` is `async def`" in one["message"] for one in item["relatedInformation"])
    start = item["range"]["start"]
    hover = client.at("textDocument/hover", "app.py", line, start["character"])
    assert "`fetch` is `async def`" in hover["contents"]["value"]
    actions = client.actions("app.py", (line, start["character"]), diagnostics=[item])
    if repaired is not None:
        fixes = [one for one in actions if one["title"].endswith(f"({item['code']})") or "likely right" in one["title"]]
        (document,) = fixes[0]["edit"]["documentChanges"]
        after = edited(text, document["edits"])
        assert repaired in after
        client.change("app.py", after)
        assert [one for one in client.pull("app.py") if one["range"]["start"]["line"] == line] == []
    elif body.startswith("def"):
        assert any(one["title"].startswith("Make `main` async") for one in actions)
    else:
        assert any(one["title"].startswith("Allow") for one in actions)
