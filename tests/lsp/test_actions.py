"""What can be done about a finding in the editor."""

import pytest
from tests.lsp.client import PULL, PUSH, Client, RpcError, edited

STORE = "class Store:\n    async def save(self, order): ...\n"
APP = """from store import Store


async def main(store: Store):
    store.save(1)
    store.save(2)


def plain(store: Store):
    \"\"\"Call `plain(store)` first.\"\"\"
    store.save(3)


def caller(store: Store):
    plain(store)


async def waits(store: Store):
    caller(store)
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "store.py").write_text(STORE)
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def changes(action):
    edit = action["edit"]
    if "changes" in edit:
        return edit["changes"]
    return {one["textDocument"]["uri"]: one["edits"] for one in edit["documentChanges"]}


def named(actions, start):
    (found,) = [one for one in actions if one["title"].startswith(start)]
    return found


def test_a_sure_fix_is_preferred(project):
    """It belongs to its diagnostic, names the version it is for, and awaits the call."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        item = client.pull("app.py")[0]
        action = named(client.actions("app.py", (4, 4), diagnostics=[item]), "Await")
        assert action["isPreferred"] is True
        assert action["diagnostics"] == [item]
        assert action["edit"]["documentChanges"][0]["textDocument"] == {"uri": uri, "version": 1}
        assert "    await store.save(1)\n" in edited(APP, changes(action)[uri])


def test_allow_on_this_line(project):
    """The comment silences just this finding, and a second rule joins the first."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        text = edited(APP, changes(named(client.actions("app.py", (4, 4)), "Allow"))[uri])
        assert "store.save(1)  # troth: allow unawaited-coroutine\n" in text
        client.change("app.py", text)
        assert 4 not in [one["range"]["start"]["line"] for one in client.pull("app.py")]


@pytest.mark.parametrize("profile", [PULL, PUSH], ids=["resolved", "by command"])
def test_fix_all(project, profile):
    """All that is sure in the file is repaired in one go."""
    with Client(project, profile) as client:
        uri = client.open("app.py")
        (action,) = client.actions("app.py", (0, 0), only=["source.fixAll"])
        if profile is PULL:
            edits = changes(client.resolve(action))[uri]
        else:
            client.request(
                "workspace/executeCommand",
                {"command": action["command"]["command"], "arguments": action["command"]["arguments"]},
            )
            edits = next(one["params"]["edit"] for one in client.requests if one["method"] == "workspace/applyEdit")[
                "changes"
            ][uri]
        assert edited(APP, edits) == APP.replace("    store.save(1)", "    await store.save(1)").replace(
            "    store.save(2)", "    await store.save(2)"
        )


MADE_ASYNC = (
    APP.replace("def plain", "async def plain")
    .replace("    store.save(3)", "    await store.save(3)")
    .replace("def caller", "async def caller")
    .replace("    plain(store)\n", "    await plain(store)\n")
    .replace("    caller(store)", "    await caller(store)")
)


def test_make_a_plain_function_async_with_its_callers(project):
    """The edits that change behaviour are to be confirmed; together they repair the loss."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        actions = client.actions("app.py", (10, 4))
        action = client.resolve(named(actions, "Make `plain` async, and its caller"))
        assert edited(APP, changes(action)[uri]) == MADE_ASYNC
        confirmed = {one["label"]: one["needsConfirmation"] for one in action["edit"]["changeAnnotations"].values()}
        assert confirmed["Await what was lost"] is True
        assert confirmed["Make `plain` async"] is False
        client.change("app.py", MADE_ASYNC)
        assert all(one["range"]["start"]["line"] < 6 for one in client.pull("app.py"))


def test_a_client_that_takes_commands_alone(project):
    """It gets no action that it does not know; the command makes the edit, of the text that it was offered for."""
    with Client(project, {"workspace": {"applyEdit": True}}) as client:
        uri = client.open("app.py")
        commands = client.actions("app.py", (4, 4))
        assert {type(offer["command"]) for offer in commands} == {str}
        for title, expected in (("Await", "    await store.save(1)\n"), ("Apply all", "    await store.save(2)\n")):
            command = named(commands, title)
            params = {"command": command["command"], "arguments": command["arguments"]}
            client.request("workspace/executeCommand", params)
            edit = client.requests[-1]["params"]["edit"]["changes"][uri]
            assert expected in edited(APP, edit)
        client.change("app.py", APP + "\n")
        with pytest.raises(RpcError):
            client.request("workspace/executeCommand", params)
    with Client(project, {}) as client:
        client.open("app.py")
        assert client.actions("app.py", (4, 4)) == []


@pytest.mark.parametrize("answer", ["Apply", "Cancel"])
def test_never_silently(project, answer):
    """A client that can show no preview is asked first, and nothing is done without a yes."""
    with Client(project, PUSH) as client:
        uri = client.open("app.py")
        client.reply_to["window/showMessageRequest"] = lambda params: {"title": answer}
        action = named(client.actions("app.py", (10, 4)), "Make `plain`")
        assert "edit" not in action
        command = action["command"]
        client.request("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
        applied = [
            one["params"]["edit"]["changes"] for one in client.requests if one["method"] == "workspace/applyEdit"
        ]
        assert bool(applied) is (answer == "Apply")
        if applied:
            assert edited(APP, applied[0][uri]) == MADE_ASYNC


def test_what_a_recolor_means_for_what_is_lost_and_what_blocks(project):
    """Callers that lose a call as well await it, which is to be confirmed; what blocks from now on is said."""
    text = "import time\n\nfrom store import Store\n\n\ndef plain(store: Store):\n    store.save(3)\n    time.sleep(1)\n\n\ndef caller(store: Store):\n    plain(store)\n    store.save(4)\n"
    awaited = (
        text.replace("def ", "async def ")
        .replace("    plain", "    await plain")
        .replace("    store", "    await store")
    )
    with Client(project, PULL) as client:
        uri = client.open("app.py", text)
        for actions in (client.actions("app.py", (6, 4)), client.actions("app.py", (5, 4), only=["refactor"])):
            action = client.resolve(named(actions, "Make `plain` async"))
            assert edited(text, changes(action)[uri]) == awaited
            lost, certain = action["edit"]["changeAnnotations"].values()
            assert (lost["label"], lost["needsConfirmation"]) == ("Await what was lost", True)
            assert "1 blocking call in what is async now" in certain["description"]


def test_nothing_is_repaired_wholesale_in_a_broken_file(project):
    """What was found before it broke can be repaired one by one."""
    with Client(project, PULL) as client:
        client.open("app.py")
        client.pull("app.py")
        client.change("app.py", APP + "x = (\n")
        titles = [action["title"] for action in client.actions("app.py", (4, 4))]
        assert titles == ["Await the call (TR101)", "Allow `unawaited-coroutine` on this line"]
        assert client.actions("app.py", (4, 4), only=["source"]) == []


def test_a_function_inside_another(project):
    """A recolor cannot name it, so that none is offered; its coroutine can be run where it is."""
    inner = "def outer(store: Store):\n    def inner():\n        store.save(4)\n\n    inner()\n"
    with Client(project, PULL) as client:
        client.open("app.py", f"{APP}\n\n{inner}")
        line = APP.count("\n") + 4
        titles = [action["title"] for action in client.actions("app.py", (line, 8))]
        assert "Run it here with `bridge.run` (TR101)" in titles
        assert not [title for title in titles if title.startswith("Make")]
        assert client.actions("app.py", (line - 1, 8), only=["refactor"]) == []


def test_run_it_with_the_bridge(project):
    """The coroutine is run where it is lost, and `bridge` is imported."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        action = client.resolve(named(client.actions("app.py", (10, 4)), "Run it here"))
        text = edited(APP, changes(action)[uri])
        assert "    bridge.run(store.save(3))\n" in text
        assert text.startswith("from troth import bridge\n")
        client.change("app.py", text)
        assert [one["range"]["start"]["line"] for one in client.pull("app.py")] == [5, 6]


def test_recolor_over_two_files(project):
    """A class is recolored with its calls in another file, from unsaved texts."""
    with Client(project, PULL) as client:
        client.open("app.py", "from store import Store\n\n\nasync def main(store: Store):\n    await store.save(1)\n")
        uri = client.open("store.py")
        (action,) = client.actions("store.py", (0, 6), only=["refactor.rewrite"])
        assert action["title"] == "Make `Store` sync, and every call of it …"
        edits = changes(client.resolve(action))
        assert edited(STORE, edits[uri]) == STORE.replace("async def", "def")
        assert set(edits) == {uri, client.uri("app.py")}


def test_what_cannot_be_recolored_is_said(project):
    """Nothing is changed, and the reason is shown."""
    (project / "app.py").write_text("class C:\n    @property\n    def size(self):\n        return 1\n")
    with Client(project, PULL) as client:
        client.open("app.py")
        (action,) = client.actions("app.py", (2, 8), only=["refactor"])
        assert "edit" not in client.resolve(action)
        shown = [one["params"]["message"] for one in client.notices if one["method"] == "window/showMessage"]
        assert "property" in shown[0] or "decorator" in shown[0]


def test_stdin_agrees_with_the_server(project):
    """`troth check -` finds in the same text what the editor shows."""
    import json
    import subprocess
    import sys

    text = APP.replace("store.save(1)", "store.save(1)\n    store.save(9)")
    command = [sys.executable, "-m", "troth", "check", "-", "--stdin-filename", "app.py", "--output-format", "json"]
    told = json.loads(
        subprocess.run(command, input=text.encode(), cwd=project, capture_output=True, check=False).stdout
    )["findings"]
    with Client(project, PULL) as client:
        client.open("app.py", text)
        shown = [(one["code"], one["range"]["start"]["line"] + 1) for one in client.pull("app.py")]
    assert shown == [(one["code"], one["line"]) for one in told]


@pytest.mark.parametrize(
    ("line", "after"),
    [
        pytest.param("f()", "f()  # troth: allow unawaited-coroutine", id="bare"),
        pytest.param("f()  # why", "f()  # why  # troth: allow unawaited-coroutine", id="behind a comment"),
        pytest.param(
            "f()  # troth: allow blocking-call", "f()  # troth: allow blocking-call, unawaited-coroutine", id="one more"
        ),
        pytest.param("f(\n    )", "f(\n    )  # troth: allow unawaited-coroutine", id="of two lines"),
        pytest.param('f("""\n""")', 'f("""\n""")  # troth: allow unawaited-coroutine', id="with a string of two lines"),
        pytest.param(
            'f("# troth: allow x")', 'f("# troth: allow x")  # troth: allow unawaited-coroutine', id="in a string"
        ),
        pytest.param("f() \\\n", None, id="before a backslash"),
        pytest.param("f()  # troth: allow-file blocking-call", None, id="a comment for the whole file"),
    ],
)
def test_a_comment_that_allows_it(project, line, after):
    """It is put where it counts, into the comment that is there; where no comment would count, none is offered."""
    text = "async def f(*_): ...\n\n\nasync def main():\n    {}\n"
    with Client(project, PULL) as client:
        uri = client.open("app.py", text.format(line))
        (finding,) = [one for one in client.pull("app.py") if one["code"] == "TR101"]
        offers = [one for one in client.actions("app.py", (4, 4)) if one["title"].startswith("Allow")]
        assert len(offers) == (after is not None)
        if after is not None and finding["range"]["end"]["line"] == 4:
            assert edited(text.format(line), changes(offers[0])[uri]) == text.format(after)
        for offer in offers:
            client.change("app.py", edited(text.format(line), changes(offer)[uri]))
            assert not [one for one in client.pull("app.py") if one["code"] == "TR101"]
