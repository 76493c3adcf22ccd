"""A file that cannot be read costs what stands in it: beside it every rule says what it says without it."""

from pathlib import Path

import pytest

from troth.analysis.findings import Finding
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import CheckRule, all_rules

BROKEN = {
    "a byte that is no UTF-8": ("broken.py", b'x = "\xff"\n'),
    "another coding than it says": ("broken.py", b'# coding: ascii\nx = "\xe9"\n'),
    "a coding that nobody knows": ("broken.py", b"# coding: klingon\nx = 1\n"),
    "a coding that is none of text": ("broken.py", b"# coding: hex\nx = 1\n"),
    "UTF-16": ("broken.py", "x = 1\n".encode("utf-16")),
    "a zero byte": ("broken.py", b"x = 1\0\n"),
    "zero bytes alone, as a full disk leaves them": ("broken.py", bytes(4096)),
    "cut off": ("broken.py", b"async def cut(off, m):\n    print(m"),
    "tabs and blanks": ("broken.py", b"if x:\n\ty\n        z\n"),
    "nested too deeply": ("broken.py", b"(" * 5000 + b")" * 5000),
    "marks of a merge": ("broken.py", b"<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n"),
    "a stub that is cut off": ("broken.pyi", b"def f("),
    "an empty notebook": ("broken.ipynb", b""),
    "a notebook that is cut off": ("broken.ipynb", b'{"cells": [{"cell_type": "code", "source": ["x'),
    "a notebook without cells": ("broken.ipynb", b"{}"),
    "a notebook that is a list": ("broken.ipynb", b"[1, 2]"),
    "a notebook that is no UTF-8": ("broken.ipynb", b'{"cells": ["\xff"]}'),
    "a notebook that nests too deeply": ("broken.ipynb", b"[" * 100_000),
}


@pytest.fixture(autouse=True)
def _no_other_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer interpreter would be started for each broken file, only to refuse it too."""
    for variable in ("PATH", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))


def programs(rule: CheckRule) -> list[dict[str, bytes]]:
    """The programs of all cases of a rule."""
    sources = [source for case in rule.cases for source in (case.bad, case.good) if source is not None]
    files = [{"case.py": source} if isinstance(source, str) else source for source in sources]
    return [{path: text.encode() for path, text in one.items()} for one in files]


def findings(files: dict[str, bytes]) -> set[Finding]:
    """What all rules find, also those that are only asked for."""
    project = Project(Path("/nowhere"), tuple(sorted(files)))
    return set(analyse(project, overlay=files, jobs=1, on_request={rule.code for rule in all_rules()}).findings)


@pytest.fixture(scope="module")
def crowd() -> tuple[dict[str, bytes], set[Finding]]:
    """All programs as one project, each in a folder of its own, and what is found there without a broken file."""
    every = [one for rule in all_rules() for one in programs(rule)]
    files = {f"p{number}/{path}": data for number, one in enumerate(every) for path, data in one.items()}
    return files, findings(files)


@pytest.mark.parametrize("kind", BROKEN)
def test_beside_a_broken_file(kind: str, crowd: tuple[dict[str, bytes], set[Finding]]) -> None:
    """Every program of every case, under every rule: the same findings, and the broken file is one more."""
    files, alone = crowd
    path, data = BROKEN[kind]
    found = findings({**files, path: data})
    assert {one.code for one in found if one.span.path == path} == {"TR001"}
    assert {one for one in found if one.span.path != path} == alone


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_beside_all_of_them(rule: CheckRule) -> None:
    """In each of its own cases a rule says the same, fix and reasons and all."""
    broken = {f"broken/b{number}{Path(path).suffix}": data for number, (path, data) in enumerate(BROKEN.values())}
    for files in programs(rule):
        found = findings({**files, **broken})
        assert {one for one in found if one.span.path not in broken} == findings(files)
        assert {one.span.path for one in found if one.code == "TR001"} == set(broken)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_program_that_speaks_of_a_broken_file(kind: str) -> None:
    """What is imported from a file that cannot be read is unknown, and no more."""
    path, data = BROKEN[kind]
    text = b"from broken import *\nfrom broken import f\nimport broken\nasync def g(): ...\ndef h():\n    f()\n    broken.g()\n    g()\n"
    found = findings({path: data, "user.py": text})
    assert [(one.code, one.span.line) for one in sorted(found) if one.span.path == "user.py"] == [("TR101", 8)]


def test_a_name_that_a_broken_file_says() -> None:
    """Nobody knows who calls by the name in the string: the function is not made sync for its callers' sake."""
    text = b"async def add(a, b):\n    return a + b\nasync def main(r):\n    await r.go()\n    return await add(1, 2)\n"
    said = b'x = "\xff"\npatch("user.add")\n'
    fixes = [
        {one.fix is not None for one in findings({"user.py": text, **files}) if one.code == "TR301"}
        for files in ({}, {"broken.py": b'x = "\xff"\n'}, {"broken.py": said})
    ]
    assert fixes == [{True}, {True}, {False}]
