"""The whole way: what `analyse` says about projects on disk, with and without what an earlier run left."""

import gc
import json
from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

STORE = "class Store:\n    async def save(self): ...\n"
APP = "from store import Store\nasync def main(store: Store):\n    store.save()\n"


def write(root: Path, files: dict[str, str]) -> Project:
    for path, text in files.items():
        (root / path).write_text(text, encoding="utf-8")
    return Project(root, tuple(sorted(p.name for p in root.iterdir() if p.suffix in {".py", ".ipynb"})))


@pytest.mark.parametrize(
    ("edit", "codes"),
    [
        pytest.param({}, ["TR101"], id="nothing changed"),
        pytest.param({"store.py": f"# a line above\n{STORE}"}, ["TR101"], id="lines moved elsewhere"),
        pytest.param({"store.py": STORE.replace("async ", "")}, [], id="the callee lost its color"),
        pytest.param({"app.py": APP.replace("store.save", "await store.save")}, [], id="repaired"),
        pytest.param({"more.py": APP}, ["TR101", "TR101"], id="a new file"),
        pytest.param({"app.py": "x = ("}, ["TR001"], id="broken"),
        pytest.param({"app.py": "run(\n    x=1,\n    {{ options }})\n"}, [], id="a template of a call"),
        pytest.param({"app.py": "{% if a %}\nimport a\n{% endif %}\n"}, [], id="a template with branches"),
        pytest.param({"app.py": "import {{ name }}\n"}, [], id="a template of an import"),
        pytest.param(
            {"app.py": "x = '{{ a }} {% if b %}'\ny = (\n"}, ["TR001"], id="broken, with a template in a string"
        ),
    ],
)
def test_a_warm_run_says_what_a_cold_one_says(tmp_path: Path, edit: dict[str, str], codes: list[str]) -> None:
    """Whatever was edited in between, keeping facts changes no finding, not even the lines its reasons name."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    root.mkdir()
    analyse(write(root, {"store.py": STORE, "app.py": APP}), cache=cache)
    project = write(root, edit)
    warm = analyse(project, cache=cache)
    assert [f.code for f in warm.findings] == codes
    assert warm.findings == analyse(project).findings
    assert analyse(project, cache=cache).findings == warm.findings


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    """Nothing in the cache can break a run."""
    project = write(tmp_path, {"app.py": STORE})
    analyse(project, cache=tmp_path / "cache")
    (tmp_path / "cache" / "facts.bin").write_bytes(b"\0" * 64)
    assert analyse(project, cache=tmp_path / "cache").checked == 1


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    """It is on again after a run, nothing is kept from it, and it does not begin with all that the run has made."""
    project = write(tmp_path, {"store.py": STORE, "app.py": APP})
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            collected.append(info["generation"])

    gc.collect()  # so that what came before gives no reason for a look
    frozen = gc.get_freeze_count()
    gc.callbacks.append(note)
    try:
        analysis = analyse(project)
        made = [[] for _ in range(10)]  # type: ignore[var-annotated]  # each would set off a look at everything
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen
    assert (analysis.checked, len(made), collected) == (2, 10, [])


def test_a_collector_that_was_off_stays_off(tmp_path: Path) -> None:
    """Whoever runs without it is not given one."""
    gc.disable()
    try:
        analyse(write(tmp_path, {"app.py": APP}))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_deleted_file_takes_its_findings_along(tmp_path: Path) -> None:
    """A file that is gone is not reported from memory."""
    cache = tmp_path / "cache"
    root = tmp_path / "project"
    root.mkdir()
    assert analyse(write(root, {"store.py": STORE, "app.py": APP}), cache=cache).findings
    (root / "app.py").unlink()
    assert not analyse(write(root, {}), cache=cache).findings


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"# coding: klingon\nx = 1\n", id="a coding nobody knows, which Python puts at column -1"),
        pytest.param(b"x = (", id="an end too soon"),
        pytest.param(b"x = 1\0", id="null bytes"),
        pytest.param(b"\xff\xfex = 1", id="another encoding"),
        pytest.param(b"\n\n  x = 1", id="an indent"),
        pytest.param(b'"""', id="an open string"),
    ],
)
def test_an_unreadable_file_has_a_place_from_1(tmp_path: Path, data: bytes) -> None:
    """Lines and columns are 1 or more, whatever the parser says: formats are made of them."""
    (tmp_path / "broken.py").write_bytes(data)
    [finding] = analyse(write(tmp_path, {})).findings
    assert finding.code == "TR001"
    assert min(finding.span.line, finding.span.column, finding.span.end_line, finding.span.end_column) >= 1


def test_an_unreadable_file_is_one_finding_and_the_rest_is_checked(tmp_path: Path) -> None:
    """Bytes that are no text, text that is no Python: each one finding."""
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff'\n")
    project = write(tmp_path, {"store.py": STORE, "app.py": APP, "broken.py": "def f(:\n"})
    analysis = analyse(project)
    assert [(f.code, f.span.path) for f in analysis.findings] == [
        ("TR101", "app.py"),
        ("TR001", "broken.py"),
        ("TR001", "bytes.py"),
    ]
    assert analysis.unreadable == ("broken.py", "bytes.py")


def test_a_notebook_is_read_cell_by_cell(tmp_path: Path) -> None:
    """Findings name the cell and count lines in it; `await` at the top of a cell is right."""
    cells = [["%pip install x\n", "async def f(): ..."], ["await f()"], ["# two lines\n", "f()"]]
    document = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
    project = write(tmp_path, {"book.ipynb": json.dumps(document)})
    (finding,) = analyse(project).findings
    assert (finding.code, finding.span.cell, finding.span.line, finding.span.column) == ("TR101", 3, 2, 1)


def test_an_overlay_stands_for_the_file(tmp_path: Path) -> None:
    """What an editor holds is checked instead of what is on the disk, and is not kept."""
    project = write(tmp_path, {"store.py": STORE, "app.py": "x = 1\n"})
    assert analyse(project, overlay={"app.py": APP.encode()}).findings
    assert not analyse(project).findings


# Each file leans on the next: a promise handed on by sync functions, and functions that wait only for one that does
# not wait itself.
LEANING = {
    **{f"give{n}.py": f"from give{n + 1} import give{n + 1}\ndef give{n}(s):\n    return give{n + 1}(s)\n" for n in range(4)},
    "give4.py": "from store import Store\ndef give4(store: Store):\n    return store.save()\n",
    "app.py": "from give0 import give0\nasync def main(s):\n    give0(s)\n",
    "store.py": "class Store:\n    async def save(self):\n        await self.flush()\n    async def flush(self):\n        await self.x()\n",
    **{
        f"idle{n}.py": f"from idle{n + 1} import idle{n + 1}\nasync def idle{n}():\n    await idle{n + 1}()\n"
        f"async def use{n}(s):\n    await idle{n}()\n    await s.go()\n"
        for n in range(3)
    },
    "idle3.py": "async def idle3():\n    return 1\n",
}  # fmt: skip


@pytest.mark.parametrize("jobs", [2, 3, 5])
def test_several_processes_say_what_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    """However the files are shared out, what one of them needs to know of another is known."""
    project = write(tmp_path, LEANING)
    alone = analyse(project, jobs=1, on_request={"TR301"}).findings
    assert {f.code for f in alone} >= {"TR101", "TR301"}
    assert sum(f.code == "TR301" for f in alone) == 4
    monkeypatch.setattr("troth.analysis.pipeline.walk_files._WORTH_A_PROCESS", 1)
    monkeypatch.setattr("troth.analysis.facts.extract_many._WORTH_A_PROCESS", 1)
    assert analyse(project, jobs=jobs, on_request={"TR301"}).findings == alone


@pytest.mark.parametrize("path", sorted(LEANING))
def test_a_warm_run_knows_what_files_lean_on(tmp_path: Path, path: str) -> None:
    """What another file hands on, or does not wait for, is known though that file was not looked at again."""
    (tmp_path / "project").mkdir()
    project = write(tmp_path / "project", LEANING)
    analyse(project, cache=tmp_path / "cache", on_request={"TR301"})
    for text in (f"{LEANING[path]}# edited\n", "", LEANING[path]):
        write(tmp_path / "project", {path: text})
        warm = analyse(project, cache=tmp_path / "cache", on_request={"TR301"}).findings
        assert warm == analyse(project, on_request={"TR301"}).findings
