"""What an editor is told, and when."""

import json
import os

import pytest
from tests.lsp.client import BARE, PROFILES, PULL, PUSH, Client, RpcError, codes

STORE = "class Store:\n    async def save(self, order): ...\n"
LOST = "from store import Store\n\n\nasync def main(store: Store):\n    store.save(1)\n"
KEPT = LOST.replace("    store.save", "    await store.save")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "store.py").write_text(STORE)
    (tmp_path / "app.py").write_text(LOST)
    return tmp_path


@pytest.mark.parametrize("name", PROFILES)
def test_told_once(project, name):
    """A client that pulls is never pushed to, any other is; each hears of the finding once."""
    profile = PROFILES[name]
    with Client(project, profile) as client:
        client.open("app.py")
        pushes = "diagnostic" not in profile.get("textDocument", {})
        assert codes(client.pushed("app.py", 1) if pushes else client.pull("app.py")) == ["TR101"]
        assert ("diagnosticProvider" in client.capabilities) is not pushes
        told = [one for one in client.notices if one["method"] == "textDocument/publishDiagnostics"]
        assert bool(told) is pushes
        if pushes:
            with pytest.raises(RpcError):
                client.pull("app.py")


def test_what_a_diagnostic_says(project):
    """It has the rule's page and the chain of reasons; a client that knows neither gets the reasons as text."""
    with Client(project, PULL) as client:
        client.open("app.py")
        (item,) = client.pull("app.py")
        assert item["codeDescription"]["href"].endswith("/unawaited-coroutine.html")
        assert [one["location"]["uri"] for one in item["relatedInformation"]] == [
            client.uri("app.py"),
            client.uri("store.py"),
        ]
        assert item["range"]["start"] == {"line": 4, "character": 4}
        assert item["severity"] == 1
    with Client(project, BARE) as client:
        client.open("app.py")
        (item,) = client.pushed("app.py", 1)
        assert "relatedInformation" not in item
        assert "because `Store.save` is `async def`" in item["message"]


def test_unsaved_texts_of_other_files_count(project):
    """What another buffer says counts before it is saved, and no longer once it is closed."""
    with Client(project, PULL) as client:
        client.open("app.py")
        client.open("store.py")
        assert codes(client.pull("app.py")) == ["TR101"]
        client.change("store.py", STORE.replace("async ", ""))
        assert client.pull("app.py") == []
        client.close_text("store.py")
        assert codes(client.pull("app.py")) == ["TR101"]


def test_the_whole_workspace_is_told(project):
    """Files that nobody has opened are told of too; a closed file keeps its findings."""
    with Client(project, PULL) as client:
        assert list(client.everything()) == [client.uri("app.py")]
    with Client(project, PUSH) as client:
        assert codes(client.pushed("app.py")) == ["TR101"]


def test_only_open_files_where_the_settings_say_so(project):
    """`diagnostics: open` tells of open files alone, and can be switched while the server runs."""
    with Client(project, PULL, settings={"diagnostics": "open"}) as client:
        assert client.everything() == {}
        client.open("app.py")
        assert list(client.everything()) == [client.uri("app.py")]
        client.close_text("app.py")
        client.settings = {"diagnostics": "workspace"}
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        before = [{"uri": client.uri("app.py"), "value": "0"}]
        report = client.request("workspace/diagnostic", {"previousResultIds": before})
        assert [one["uri"] for one in report["items"]] == [client.uri("app.py")]


def test_a_settings_change_needs_no_restart(project):
    """Rules can be switched off in the editor and in the project, and on again."""
    with Client(project, PUSH, options={"ignore": ["TR101"]}) as client:
        client.open("app.py")
        assert client.pushed("app.py", 1) == []
        client.notify("workspace/didChangeConfiguration", {"settings": {"troth": {"ignore": []}}})
        client.until(lambda: client.pushed("app.py", 1) != [], "the finding")
        (project / "pyproject.toml").write_text("[tool.troth]\nignore = ['TR1']\n")
        client.notify("textDocument/didSave", {"textDocument": {"uri": client.uri("app.py")}})
        client.until(lambda: client.pushed("app.py", 1) == [], "its end")
        client.notify("workspace/didChangeConfiguration", {"settings": {"troth": {"select": ["TR1099"]}}})
        client.until(
            lambda: any("TR1099" in json.dumps(one) for one in client.notices), "what is wrong with the setting"
        )


def test_a_broken_file_is_judged_by_what_it_last_said(project):
    """While somebody types, findings outside of the broken part stay, at their new places."""
    with Client(project, PULL) as client:
        client.open("app.py")
        client.open("store.py")
        broken = LOST.replace("\n\nasync def main", "\n\ndef half(:\n\nasync def main")
        client.change("app.py", broken)
        found = {one["code"]: one["range"]["start"]["line"] for one in client.pull("app.py")}
        assert found == {"TR001": 3, "TR101": 6}
        client.change("store.py", STORE.replace("async ", ""))
        assert codes(client.pull("app.py")) == ["TR001"]
        client.change("store.py", STORE)
        client.change("app.py", LOST.replace("store.save(1)", "store.save(1"))
        assert codes(client.pull("app.py")) == ["TR001"]
        client.change("store.py", STORE.replace("self, order", "self, order:"))
        client.change("app.py", LOST)
        assert codes(client.pull("app.py")) == ["TR101"]


def test_needless_async_is_drawn_as_unnecessary(project):
    """A needless async function has the tag, and is no error."""
    (project / "app.py").write_text(
        "async def add(a, b):\n    return a + b\n\n\nasync def main():\n    print(await add(1, 2))\n\n\nimport asyncio\nasyncio.run(main())\n"
    )
    with Client(project, PULL, settings={"select": ["TR3"]}) as client:
        client.open("app.py")
        items = client.pull("app.py")
        assert items
        assert {(tuple(one["tags"]), one["severity"]) for one in items} == {((1,), 3)}


def test_an_unchanged_answer_says_so(project):
    """A client that has the diagnostics is not sent them again."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        first = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        again = client.request(
            "textDocument/diagnostic", {"textDocument": {"uri": uri}, "previousResultId": first["resultId"]}
        )
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}


def test_files_that_come_and_go(project):
    """A new buffer counts before it is saved, and a file that is deleted outside of the editor is gone."""
    with Client(project, PULL) as client:
        client.open("app.py")
        client.open("other.py", LOST)
        assert codes(client.pull("other.py")) == ["TR101"]
        client.close_text("other.py")
        (project / "store.py").unlink()
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": client.uri("store.py"), "type": 3}]})
        assert client.pull("app.py") == []


def test_two_folders_and_a_file_of_neither(tmp_path):
    """Each folder is a project of its own; a file outside of both is looked at alone."""
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text("[project]\n")
        (tmp_path / name / "app.py").write_text("async def f(): ...\nasync def g():\n    f()\n")
    with Client(tmp_path, PULL, folders=[tmp_path / "one", tmp_path / "two"]) as client:
        assert sorted(client.everything()) == [client.uri("one/app.py"), client.uri("two/app.py")]
        client.open("three/app.py")
        assert codes(client.pull("three/app.py")) == ["TR101"]
        removed = [{"uri": (tmp_path / "one").as_uri(), "name": "one"}]
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": removed}})
        assert sorted(client.everything()) == [client.uri("three/app.py"), client.uri("two/app.py")]


@pytest.mark.parametrize("profile", [PULL, PUSH], ids=["pulled", "pushed"])
def test_a_text_that_was_never_saved(project, profile):
    """It is a part of the project, told and repaired under its own address, and gone when it is closed."""
    uri = "untitled:Untitled-1"
    with Client(project, profile) as client:

        def told(version):
            if profile is PULL:
                return codes(client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"])
            sent = [one["params"] for one in client.notices if one["method"] == "textDocument/publishDiagnostics"]
            return [codes(one["diagnostics"]) for one in sent if (one["uri"], one.get("version")) == (uri, version)]

        text = {"uri": uri, "languageId": "python", "version": 1, "text": LOST}
        client.notify("textDocument/didOpen", {"textDocument": text})
        if profile is PULL:
            assert told(1) == ["TR101"]
            assert uri in client.everything()
        else:
            client.until(lambda: told(1) == [["TR101"]], "its finding")
        place = {"line": 4, "character": 4}
        params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        action = client.request("textDocument/codeAction", params)[0]
        assert uri in json.dumps(action["edit"])
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        if profile is PULL:
            assert told(1) == []
            assert uri not in client.everything()
        else:
            client.until(lambda: told(None) == [[]], "its end")


def test_a_new_file_outside_of_all_folders(tmp_path, project):
    """It is looked at before it is saved, alone, and afterwards."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "beside.py").write_text(LOST)
    text = "async def f(): ...\nasync def g():\n    f()\n"
    with Client(folder, PULL, folders=[project / "nowhere"]) as client:
        client.open("new.py", text)
        assert codes(client.pull("new.py")) == ["TR101"]
        client.change("new.py", f"\n{text}")
        assert [one["range"]["start"]["line"] for one in client.pull("new.py")] == [3]
        (folder / "new.py").write_text(f"\n{text}")
        client.notify("textDocument/didSave", {"textDocument": {"uri": client.uri("new.py")}})
        client.change("new.py", text)
        assert [one["range"]["start"]["line"] for one in client.pull("new.py")] == [2]
        assert list(client.everything()) == [client.uri("new.py")]


@pytest.mark.parametrize("profile", [PULL, PUSH], ids=["pulled", "pushed"])
def test_settings_that_cannot_be_read(project, profile):
    """Findings are taken back: they would be told of a text that changes meanwhile. The user hears why, in his words."""
    with Client(project, profile, settings={}) as client:
        client.open("app.py")
        ask = client.pull if profile is PULL else client.pushed
        assert codes(ask("app.py")) == ["TR101"]
        client.settings = {"select": ["TR1099"]}
        client.notify("workspace/didChangeConfiguration", {"settings": {"troth": client.settings}})
        client.until(lambda: ask("app.py") == [], "that nothing is told")
        shown = [one["params"]["message"] for one in client.notices if one["method"] == "window/showMessage"]
        assert "`troth.select`: there is no rule 'TR1099'" in shown[0]
        client.settings = {}
        client.notify("workspace/didChangeConfiguration", {"settings": {"troth": {}}})
        client.until(lambda: codes(ask("app.py")) == ["TR101"], "the finding")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("name", ["vscode", "neovim 0.7"])
def test_one_file_open_under_two_names(project, name):
    """Both texts are told of, and what was edited last counts, whichever name it was edited under."""
    (project / "link.py").symlink_to(project / "app.py")
    with Client(project, PROFILES[name]) as client:

        def told(name):
            version = client.versions[client.uri(name)]
            return codes(
                client.pull(name) if "diagnosticProvider" in client.capabilities else client.pushed(name, version)
            )

        client.open("app.py")
        client.open("link.py")
        assert (told("app.py"), told("link.py")) == (["TR101"], ["TR101"])
        client.change("app.py", KEPT + "    store.save(2)\n    store.save(3)\n")
        assert told("app.py") == ["TR101", "TR101"]
        assert client.actions("link.py", (4, 4)) == []  # its text is no longer the one that was looked at
        client.change("link.py", KEPT)
        assert told("link.py") == []
        assert client.actions("link.py", (4, 4)) == []
        client.close_text("link.py")
        client.change("app.py", KEPT + "    store.save(2)\n")
        assert told("app.py") == ["TR101"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_folder_behind_a_link_is_told_by_that_link(project, tmp_path_factory):
    """The client hears of files by the way it knows them."""
    link = tmp_path_factory.mktemp("links") / "shop"
    link.symlink_to(project, target_is_directory=True)
    with Client(link, PULL) as client:
        assert list(client.everything()) == [(link / "app.py").as_uri()]
        client.open("app.py", KEPT)
        assert client.everything() == {}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_are_counted_as_agreed(project, encoding):
    """A letter of two units before the call moves it by two, and a form feed ends no line."""
    text = LOST.replace("    store.save(1)", "    x = '\U0001f600ü'\x0c; store.save(1)")
    with Client(project, {**PULL, "general": {"positionEncodings": [encoding]}}) as client:
        client.open("app.py", text)
        (item,) = client.pull("app.py")
        before = text.split("\n")[4].partition("store.save")[0]
        size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
        width = len(before.encode(encoding if encoding == "utf-8" else f"{encoding}-le")) // size
        assert item["range"]["start"] == {"line": 4, "character": width}


def test_notebooks(project):
    """A finding is told at its cell; cells that come, change and go are followed, and a fix edits the cell."""
    with Client(project, PULL) as client:
        cells = [(project / "n.ipynb").as_uri().replace("file:", "vscode-notebook-cell:") + f"#{n}" for n in range(3)]
        texts = ["async def f(): ...", "# Title", "x = 1\nf()"]
        kinds = [2, 1, 2]
        notebook = {
            "uri": client.uri("n.ipynb"),
            "notebookType": "jupyter-notebook",
            "version": 1,
            "cells": [{"kind": kind, "document": uri} for kind, uri in zip(kinds, cells, strict=True)],
        }
        items = [{"uri": u, "languageId": "python", "version": 1, "text": t} for u, t in zip(cells, texts, strict=True)]
        client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": items})
        answer = client.request("textDocument/diagnostic", {"textDocument": {"uri": cells[2]}})
        assert [(one["code"], one["range"]["start"]["line"]) for one in answer["items"]] == [("TR101", 1)]
        place = {"line": 1, "character": 0}
        params = {
            "textDocument": {"uri": cells[2]},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": []},
        }
        action = client.request("textDocument/codeAction", params)[0]
        (change,) = action["edit"]["documentChanges"]
        assert (change["textDocument"]["uri"], change["edits"][0]["newText"]) == (cells[2], "await ")
        edit = {"document": {"uri": cells[2], "version": 2}, "changes": [{"text": "x = 1\nawait f()"}]}
        changed = {
            "notebookDocument": {"uri": notebook["uri"], "version": 2},
            "change": {"cells": {"textContent": [edit]}},
        }
        client.notify("notebookDocument/didChange", changed)
        assert client.request("textDocument/diagnostic", {"textDocument": {"uri": cells[2]}})["items"] == []


def test_no_answer_for_a_text_that_is_gone(project):
    """A question about a text that has changed meanwhile may be refused; the last one is about the last text."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        client.pull("app.py")
        place = {"line": 4, "character": 8}
        late = []
        for _ in range(30):
            client.change("app.py", LOST)
            late.append(client.send("textDocument/hover", {"textDocument": {"uri": uri}, "position": place}))
            client.change("app.py", KEPT)
        refused = set()
        for number in late:
            try:
                client.wait(number)
            except RpcError as error:
                refused.add(error.code)
        assert refused <= {-32801}
        last = client.at("textDocument/hover", "app.py", 4, 14)
        assert "TR101" not in json.dumps(last)
        assert client.pull("app.py") == []


def test_the_log_has_no_source_text(project, tmp_path_factory):
    """A user can send it."""
    log = tmp_path_factory.mktemp("log") / "troth.log"
    with Client(project, PULL, args=("--log", str(log))) as client:
        client.open("app.py", LOST.replace("main", "secret_name"))
        client.pull("app.py")
        client.change("app.py", LOST)
        client.pull("app.py")
        client.at("textDocument/hover", "app.py", 4, 6)
    text = log.read_text()
    assert "checked" in text
    assert "textDocument/hover was answered after" in text
    assert "secret_name" not in text
