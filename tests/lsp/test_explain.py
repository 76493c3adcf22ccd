"""What an editor shows beside findings: reasons, callers, colors."""

import pytest
from tests.lsp.client import BARE, PULL, Client

TEXT = """import asyncio, contextlib


class Store:
    async def save(self, order): ...


def later(store: Store):
    return store.save(1)


async def waits(store: Store):
    await store.save(1)
    store.save(2)
    await later(store)
    asyncio.sleep


def each(call):
    call(1)


def show(order): ...


each(show)


async def pages():
    yield 1


@contextlib.asynccontextmanager
async def opened():
    yield 1
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize(
    ("place", "says"),
    [
        pytest.param((4, 16), "`Store.save` is **async**", id="a definition"),
        pytest.param((7, 6), "`later` is **async**", id="a sync function that returns a coroutine"),
        pytest.param((12, 18), "`Store.save` is **async**", id="a call that is awaited"),
        pytest.param((18, 6), "`each` is **sync**", id="a sync function"),
        pytest.param(
            (28, 12), "makes an async generator; the work is done while `async for` iterates", id="a generator"
        ),
        pytest.param(
            (33, 12), "makes an async context manager; the work is done when that is entered", id="a context manager"
        ),
    ],
)
def test_hover_says_why(project, place, says):
    """The color comes with the chain that leads to it, as links."""
    with Client(project, PULL) as client:
        client.open("app.py")
        text = client.at("textDocument/hover", "app.py", *place)["contents"]["value"]
        assert says in text
        assert f"({client.uri('app.py')}#L" in text


def test_hover_for_a_client_without_markdown(project):
    """Links and stars are left out."""
    capabilities = {"textDocument": {"hover": {"contentFormat": ["plaintext"]}}}
    with Client(project, capabilities) as client:
        client.open("app.py")
        contents = client.at("textDocument/hover", "app.py", 13, 10)["contents"]
        assert contents["kind"] == "plaintext"
        assert "](" not in contents["value"]


def test_lens(project):
    """It counts the calls of an async function, and those that do not wait; it can be switched off."""
    with Client(project, PULL) as client:
        uri = client.open("app.py")
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        titles = {
            one["range"]["start"]["line"]: client.request("codeLens/resolve", one)["command"]["title"] for one in lenses
        }
        assert titles == {
            4: "async: 3 calls, 1 does not wait",
            11: "async: no caller in the project",
            28: "async generator: no caller in the project",
            33: "async context manager: no caller in the project",
        }
        client.settings = {"lens": False}
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        client.until(
            lambda: any(one["method"] == "workspace/configuration" for one in client.requests[1:]), "the question"
        )
        client.until(lambda: not client.request("textDocument/codeLens", {"textDocument": {"uri": uri}}), "no lens")


def test_a_lens_counts_calls_and_not_lines(project):
    """What is lost beside a call, or what a dropped task is made of, is not the call itself."""
    text = (
        "import asyncio\n\n\nasync def inner(x=1): ...\n\n\nasync def outer(x=1): ...\n\n\nasync def main():\n"
        "    outer(await inner())\n    asyncio.create_task(inner())\n    x = inner()\n    return '😀', inner(), await outer()\n"
    )
    with Client(project, PULL) as client:
        uri = client.open("app.py", text)
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        titles = [client.request("codeLens/resolve", lens)["command"]["title"] for lens in lenses]
        assert titles[:2] == ["async: 4 calls, 2 do not wait", "async: 2 calls, 1 does not wait"]


def test_a_lens_is_asked_for_again_when_a_call_elsewhere_is_lost(project):
    """The client is asked to fetch its lenses: the text under them is the same."""
    (project / "other.py").write_text(
        "from app import Store\n\n\nasync def more(store: Store):\n    await store.save(1)\n"
    )
    profile = {**PULL, "workspace": {**PULL["workspace"], "codeLens": {"refreshSupport": True}}}
    with Client(project, profile) as client:
        uri = client.open("app.py")
        client.open("other.py")
        client.everything()

        def title():
            lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
            return client.request("codeLens/resolve", lenses[0])["command"]["title"]

        assert title() == "async: 4 calls, 1 does not wait"
        client.change("other.py", (project / "other.py").read_text().replace("await ", ""))
        client.until(
            lambda: any(request["method"] == "workspace/codeLens/refresh" for request in client.requests), "a refresh"
        )
        assert title() == "async: 4 calls, 2 do not wait"


def test_call_hierarchy_by_color(project):
    """Callers and callees come with their color."""
    with Client(project, BARE) as client:
        client.open("app.py")
        (item,) = client.at("textDocument/prepareCallHierarchy", "app.py", 12, 18)
        assert (item["name"], item["detail"]) == ("Store.save", "async · app.py")
        incoming = client.request("callHierarchy/incomingCalls", {"item": item})
        assert {
            one["from"]["name"]: (one["from"]["detail"].split()[0], len(one["fromRanges"])) for one in incoming
        } == {
            "later": ("async", 1),
            "waits": ("async", 2),
        }
        (waits,) = client.at("textDocument/prepareCallHierarchy", "app.py", 11, 12)
        outgoing = client.request("callHierarchy/outgoingCalls", {"item": waits})
        assert [one["to"]["name"] for one in outgoing] == ["Store.save", "later"]


def test_inlay_is_off_unless_asked_for(project):
    """It shows the color of a parameter that is called and not annotated."""
    with Client(project, BARE) as client:
        uri = client.open("app.py")
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        assert client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole}) == []
        client.notify("workspace/didChangeConfiguration", {"settings": {"troth": {"inlay": True}}})
        hints = client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole})
        assert [(one["label"], one["position"]) for one in hints] == [(": sync", {"line": 18, "character": 13})]
