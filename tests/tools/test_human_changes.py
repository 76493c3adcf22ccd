"""The command that compares `troth recolor` with what people did, on a history that is made here."""

import json
import subprocess

import pytest
from bench.recolor.human_answers import Clone
from bench.recolor.human_changes import drawn, main

BEFORE = {
    "shop.py": "def load():\n    return 1\n\n\ndef show():\n    return load()\n\n\ndef count(): return load() + 1\n",
    "test_shop.py": "import shop\n\n\ndef test_show():\n    assert shop.show() == 1\n",
    "page.py": "import shop\n\n\nclass Page:\n    @property\n    def rows(self): return shop.show()\n",
}
AFTER = {
    "shop.py": "async def load():\n    return 1\n\n\nasync def show():\n    return await load()\n\n\n"
    "async def count(): return load() + 1\n",
    "test_shop.py": "import shop\n\n\nasync def test_show():\n    assert await shop.show() == 1\n",
    "page.py": "import asyncio\nimport shop\n\n\nclass Page:\n    @property\n"
    "    def rows(self): return asyncio.run(shop.show())\n",
}


def git(folder, *arguments):
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-C", str(folder)]
    subprocess.run([*command, *arguments], check=True, capture_output=True, timeout=60)


def committed(folder, files, subject):
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", subject)


@pytest.fixture
def clone(tmp_path):
    """Sync functions that a page calls; then they are async, and people forget one `await`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "--quiet")
    committed(folder, BEFORE, "A shop")
    committed(folder, {"notes.py": "async def note(): ...\n"}, "Add async notes")
    committed(folder, AFTER, "Make the shop async")
    committed(folder, {"shop.py": AFTER["shop.py"] + "\n\nVERSION = 2\n"}, "Second version of the async shop")
    return folder


def outcomes(clone, *options):
    out = clone.parent / "out.json"
    main([str(clone), "--json", str(out), *options])
    return json.loads(out.read_text(encoding="utf-8"))


def test_changes_are_those_in_which_plain_functions_became_async(clone):
    """Not those that only speak of it, and no functions of tests."""
    (change,) = drawn(Clone(clone), 5, 7)
    assert change.subject == "Make the shop async"
    assert change.functions == ("shop.py:load", "shop.py:show", "shop.py:count")


def test_a_bare_clone_has_the_same_changes(clone):
    bare = clone.parent / "bare" / "repo"
    git(clone, "clone", "--quiet", "--bare", str(clone), str(bare))
    assert [one[1:] for one in drawn(Clone(bare), 5, 7)] == [one[1:] for one in drawn(Clone(clone), 5, 7)]
    assert Clone(bare).name == "bare"


def test_without_decisions_a_property_stands_in_the_way(clone):
    (outcome,) = outcomes(clone)
    assert outcome["verdict"] == "refused"
    assert [text for _, text in outcome["refused"] if "page.py:6 shop.show" in text]
    assert outcome["answers"] == {}


def test_decisions_are_read_from_what_people_did(clone, capsys):
    """They run a loop in the property; and the call that they forgot is the one that differs."""
    (outcome,) = outcomes(clone, "--decide")
    assert outcome["verdict"] == "through with decisions"
    assert outcome["answers"] == {"page.py:Page.rows": ["boundary", True]}
    calls, differing, colors = outcome["compared"]
    assert calls == 4  # `load` in two functions, `show` in the property and the test
    assert differing == ["shop.py:count: load(): awaited here [True], by people [False]"]
    assert colors == []
    assert (
        "shop                                1        0        1        0        0        0        4        1        0"
        in (capsys.readouterr().out)
    )


def test_the_cascade_alone_gets_through(clone):
    """The property runs the coroutine by itself, and nothing had to be answered or marked."""
    (outcome,) = outcomes(clone, "--furthest")
    assert (outcome["verdict"], outcome["answers"], outcome["marked"]) == ("through", {}, 0)
    assert outcome["compared"][1] == ["shop.py:count: load(): awaited here [True], by people [False]"]


def test_commits_can_be_named_instead_of_drawn(clone, capsys):
    """One that no clone has is named, so that a share is never of fewer changes than one thinks."""
    commits = clone.parent / "commits"
    (change,) = drawn(Clone(clone), 5, 7)
    commits.write_text(f"# of the shop\n\n{change.commit[:12]} shop\n", encoding="utf-8")
    assert [outcome["commit"] for outcome in outcomes(clone, "--commits", str(commits))] == [change.commit]
    commits.write_text("0123456789ab elsewhere\n", encoding="utf-8")
    assert outcomes(clone, "--commits", str(commits)) == []
    assert "Not found, or no change of this kind: 0123456789ab" in capsys.readouterr().out
