"""What an object is of which nothing is known but the name that it is kept under."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

SERVER = (
    "import asyncio\nclass Server:\n    def __init__(self):\n        self.state_event = asyncio.Event()\n"
    "        self.transport = asyncio.Event()\n"
)
LIGHT = "class Light:\n    async def start(self): ...\nclass Motor:\n    def start(self): ...\n"


def told(files: dict[str, str]) -> list[tuple[str, int, str]]:
    """The file, the line and the confidence of every finding."""
    texts = {path: text.encode() for path, text in files.items()}
    found = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).findings
    return [(f.span.path, f.span.line, f.confidence) for f in found]


def marked(files: dict[str, str]) -> list[tuple[str, int, str]]:
    """The lines that are marked."""
    return [
        (path, number, "likely")
        for path, text in sorted(files.items())
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# lost")
    ]


SEEN = {
    "an attribute that one class has": {
        "server.py": SERVER,
        "app.py": "class Page:\n    def __init__(self, app):\n        self.app = app\n"
        "    async def load(self):\n        self.app.state_event.wait()  # lost\n",
    },
    "one that a subclass sets": {
        "app.py": "import asyncio\nclass Base:\n    async def work(self):\n        self.trace_queue.put(1)  # lost\n"
        "class Real(Base):\n    async def start(self):\n        self.trace_queue = asyncio.Queue()\n"
    },
    "one that another class is given": {
        "server.py": SERVER,
        "app.py": "class Page:\n    def __init__(self, event):\n        self.state_event = event\n"
        "class Other:\n    async def load(self, page):\n        page.state_event.wait()  # lost\n",
    },
    "one word under which all classes keep the same": {
        "one.py": "import asyncio\nclass One:\n    def __init__(self):\n        self.ready = asyncio.Event()\n",
        "two.py": "import asyncio\nclass Two:\n    def __init__(self):\n        self.ready = asyncio.Event()\n",
        "app.py": "async def load(app):\n    app.ready.wait()  # lost\n",
    },
    "a variable that is called like a class": {
        "light.py": LIGHT,
        "app.py": "async def use(light):\n    await light.start()\n"
        "async def all_of(lights):\n    for light in lights:\n        light.start()  # lost\n",
    },
}


@pytest.mark.parametrize("files", [pytest.param(files, id=name) for name, files in SEEN.items()])
def test_a_name_tells_which_object_it_is(files: dict[str, str]) -> None:
    """The marked lines, and nothing else, are found, as likely."""
    assert told(files) == marked(files)


SILENT = {
    "an attribute of a base of which nothing is known": {
        "light.py": LIGHT,
        "app.py": "from theatre import Stage\nasync def use(light):\n    await light.start()\n"
        "class Play(Stage):\n    async def begin(self):\n        self.light.start()\n",
    },
    "a name that says little": {
        "server.py": SERVER,
        "app.py": "async def load(app):\n    app.transport.wait()\n",
    },
    "one word under which a class keeps what it is given": {
        "one.py": "import asyncio\nclass One:\n    def __init__(self):\n        self.ready = asyncio.Event()\n",
        "two.py": "class Two:\n    def __init__(self, ready):\n        self.ready = ready\n",
        "app.py": "async def load(app):\n    app.ready.wait()\n",
    },
    "an object that a test made": {
        "server.py": SERVER,
        "tests/app.py": "async def load(app):\n    app.state_event.wait()\n",
    },
    "another class keeps something else under it": {
        "server.py": SERVER,
        "other.py": "import threading\nclass Worker:\n    def __init__(self):\n        self.state_event = threading.Event()\n",
        "app.py": "async def load(app):\n    app.state_event.wait()\n",
    },
    "only a test keeps it": {
        "tests/test_server.py": SERVER,
        "app.py": "async def load(app):\n    app.state_event.wait()\n",
    },
    "an object of a library": {
        "server.py": SERVER,
        "app.py": "import unknown\nasync def load():\n    app = unknown.App()\n    app.state_event.wait()\n",
    },
    "nobody awaits it of a variable that is called like the class": {
        "light.py": "class Light:\n    async def start(self): ...\n",
        "motor.py": "class Motor:\n    def start(self): ...\n",
        "app.py": "async def use(light):\n    light.start()\n",
    },
    "its own class puts in what nobody knows": {
        "server.py": SERVER,
        "app.py": "import grpc_like\nclass Plain:\n    def __init__(self):\n        self.state_event = grpc_like.event()\n"
        "    def close(self):\n        self.state_event.wait()\n",
    },
    "a variable in a sync function": {
        "light.py": LIGHT,
        "app.py": "async def use(light):\n    await light.start()\ndef again(light):\n    light.start()\n",
    },
    "a word that everybody uses": {
        "client.py": "class Client:\n    async def post(self, x): ...\nclass Motor:\n    def post(self, x): ...\n",
        "use.py": "async def use(client):\n    await client.post(1)\n",
        "app.py": "from locust_like import User\nclass Load(User):\n    async def go(self):\n        self.client.post(1)\n",
    },
    "two classes are called so": {
        "light.py": "class Light:\n    async def start(self): ...\n",
        "plain.py": "class Light:\n    def start(self): ...\n",
        "app.py": "async def use(light):\n    await light.start()\nasync def again(light):\n    light.start()\n",
    },
    "the method of the class is plain": {
        "light.py": "class Light:\n    def start(self): ...\n",
        "other.py": "class Other:\n    async def start(self): ...\n",
        "app.py": "async def use(light):\n    await light.start()\nasync def again(light):\n    light.start()\n",
    },
}


@pytest.mark.parametrize("files", [pytest.param(files, id=name) for name, files in SILENT.items()])
def test_a_name_that_may_mean_another_object(files: dict[str, str]) -> None:
    """Nothing is lost."""
    assert [one for one in told(files) if one[2] == "likely" and "app.py" in one[0]] == []
