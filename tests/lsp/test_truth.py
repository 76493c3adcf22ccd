"""After each edit the server's answer is that of a fresh check of the same texts."""

import json
import random
import subprocess
import sys

import pytest
from tests.lsp.client import PULL, Client

FILES = {
    "store.py": "import asyncio\n\n\nclass Store:\n    async def save(self, order):\n        await asyncio.sleep(0)\n\n    def size(self):\n        return 1\n\n    async def load(self, key):\n        return await self.find(key)\n\n    async def find(self, key): ...\n",
    "service.py": "from store import Store\n\n\nclass Service:\n    def __init__(self):\n        self.store = Store()\n\n    async def add(self, order):\n        await self.store.save(order)\n        self.store.size()\n\n    def later(self, key):\n        return self.store.load(key)\n",
    "app.py": "import asyncio\n\nfrom service import Service\n\n\nasync def main():\n    service = Service()\n    await service.add(1)\n    found = await service.later(2)\n    print(found)\n\n\ndef plain(service: Service):\n    return service.store.size()\n\n\nasyncio.run(main())\n",
}
SWAPS = [
    ("await ", ""),
    ("async def ", "def "),
    ("def size", "async def size"),
    ("save", "store_it"),
    ("    return 1", "    return self.load(1)"),
    ("self.store = Store()", "self.store = None"),
    ("print(found)", "print(found"),
    ("service.later(2)", "service.later(2)  # troth: allow unawaited-coroutine"),
    ("\n\n\n", "\n\n\n# a comment\n\n"),
    ("return await", "return"),
]


def fresh(folder, texts):
    """What a check finds that has seen nothing before."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "troth", "check", "--no-cache", "--output-format", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    found = json.loads(done.stdout)["findings"]
    return sorted((one["code"], one["path"], one["line"]) for one in found)


@pytest.mark.parametrize(
    ("seed", "edits"), [(1, 12), *(pytest.param(seed, 60, marks=pytest.mark.soak) for seed in range(2, 8))]
)
def test_same_as_a_fresh_check(tmp_path, seed, edits):
    """Random edits in three files; one that breaks a file is left out, as there the last whole text counts."""
    rng = random.Random(seed)
    beside, folder = tmp_path / "fresh", tmp_path / "project"
    for place in (beside, folder):
        place.mkdir()
        (place / "pyproject.toml").write_text("[project]\n")
        for name, text in FILES.items():
            (place / name).write_text(text)
    texts = dict(FILES)
    with Client(folder, PULL) as client:
        for name in texts:
            client.open(name)
        for number in range(edits):
            name = rng.choice(sorted(texts))
            old, new = rng.choice(SWAPS)
            if rng.random() < 0.5:
                old, new = new, old
            places = [at for at in range(len(texts[name])) if old and texts[name].startswith(old, at)]
            if not places:
                continue
            at = rng.choice(places)
            texts[name] = texts[name][:at] + new + texts[name][at + len(old) :]
            client.change(name, texts[name])
            if rng.random() < 0.3:
                continue  # typed on before anybody looked
            expected = fresh(beside, texts)
            if any(code == "TR001" for code, _, _ in expected):
                client.everything()
                texts[name] = FILES[name]
                client.change(name, texts[name])
                continue
            told = client.everything()
            found = sorted(
                (one["code"], uri.rpartition("/")[2], one["range"]["start"]["line"] + 1)
                for uri, items in told.items()
                for one in items
            )
            assert found == expected, (number, name, old, new)
