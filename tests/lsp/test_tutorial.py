"""The tutorial “from a squiggle to a recolored class”, word by word, as a client does it."""

import json
import re
from pathlib import Path

from tests.lsp.client import PULL, Client, edited

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "from-a-squiggle-to-a-recolored-class.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


def documents(action):
    return {one["textDocument"]["uri"]: one["edits"] for one in action["edit"]["documentChanges"]}


def test_word_by_word(tmp_path):
    """Each step shows what the page says, and the last one leaves nothing to tell."""
    for name in ("store.py", "app.py"):
        (tmp_path / name).write_text(FILES[name])
    text = FILES["app.py"]
    with Client(tmp_path, PULL) as client:
        store, app = client.open("store.py"), client.open("app.py")

        def line_of(words):
            return text.split("\n").index(words)

        def titles(words, only=None):
            return {action["title"]: action for action in client.actions("app.py", (line_of(words), 4), only=only)}

        def lens():
            lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": store}})
            return client.request("codeLens/resolve", lenses[0])["command"]["title"]

        (item,) = client.pull("app.py")
        assert item["range"]["start"]["line"] == line_of("    store.save(1)")
        hover = client.at("textDocument/hover", "app.py", item["range"]["start"]["line"], 6)["contents"]["value"]
        assert "annotated" in hover
        assert hover.count("](file://") >= 2
        fix = titles("    store.save(1)")["Await the call (TR101)"]
        assert fix["isPreferred"]
        text = edited(text, documents(fix)[app])
        client.change("app.py", text)
        assert client.pull("app.py") == []
        assert "async: 2 calls, all wait" in PAGE
        assert lens() == "async: 2 calls, all wait"
        client.change("app.py", FILES["app.py"])
        assert "1 does not wait" in PAGE
        assert lens() == "async: 2 calls, 1 does not wait"

        text = f"{text}\n\n{FILES['more.py']}"
        client.change("app.py", text)
        assert [item["range"]["start"]["line"] for item in client.pull("app.py")] == [line_of("    store.save(3)")]
        offered = titles("    store.save(3)")
        for title in ("Make `checkout` async, and its caller …", "Run it here with"):
            assert title in PAGE
            assert any(name.startswith(title) for name in offered)
        action = client.resolve(offered["Make `checkout` async, and its caller …"])
        annotations = action["edit"]["changeAnnotations"]
        ticked = [not annotations[edit["annotationId"]]["needsConfirmation"] for edit in documents(action)[app]]
        assert sorted(ticked) == [False, True, True, True]
        text = edited(text, documents(action)[app])
        client.change("app.py", text)
        assert client.pull("app.py") == []

        (recolor,) = client.actions("store.py", (0, 6), only=["refactor"])
        assert recolor["title"] == "Make `Store` sync, and every call of it …"
        changes = documents(client.resolve(recolor))
        assert set(changes) == {store, app}
        client.change("store.py", edited(FILES["store.py"], changes[store]))
        text = edited(text, changes[app])
        client.change("app.py", text)
        assert client.everything() == {}, json.dumps(client.everything())
        for name in ("main", "checkout", "serve"):
            place = (line_of(f"async def {name}(store: Store) -> None:"), 10)
            (recolor,) = client.actions("app.py", place, only=["refactor"])
            assert recolor["title"] == f"Make `{name}` sync, and every call of it …"
            text = edited(text, documents(client.resolve(recolor))[app])
            client.change("app.py", text)
        assert "async" not in text
        assert client.everything() == {}
