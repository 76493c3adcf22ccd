"""Whatever is typed into a real project, what is known of it afterwards is what a check finds that knows nothing."""

import itertools
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troth.analysis.check import CheckRequest, check, prepare
from troth.analysis.pipeline import silent_functions
from troth.lsp.sessions import checker as checker_module
from troth.lsp.sessions.checker import FolderChecker

PACKAGE = "anyio"  # async on both sides, with protocols, overrides and context managers; the tests need it in any case
SECOND = "pygls"  # of both colors as well, and needed in any case
EDITS = {
    "lose an await": (r"\bawait ", ""),
    "make async": (r"(?m)^( *)def ", r"\1async def "),
    "make sync": (r"\basync def ", "def "),
    "rename": (r"\b(aclose|send|receive|wait|acquire|release|start)\b", r"\1_x"),
    "rename back": (r"\b(aclose|send|receive|wait|acquire|release|start)_x\b", r"\1"),
    "add a function": (r"\Z", "\n\nasync def typed_here():\n    typed_here()\n"),
    "add a caller": (r"\Z", "\n\nasync def caller_of(stream):\n    stream.aclose()\n    await stream.send(1)\n"),
    "a comment above": (r"\A", "# typed\n\n"),
    "drop a result": (r"(?m)^( +)return await ", r"\1await "),
    "break a line": (r"(?m)^( +)return\b", r"\1return ("),
    "drop an import": (r"(?m)^from \.\.?_core\S* import .*$", ""),
}
edits = st.lists(
    st.tuples(st.sampled_from(sorted(EDITS)), st.integers(0, 10_000), st.integers(0, 10_000), st.booleans()),
    min_size=4,
    max_size=8,
)


@pytest.fixture(scope="module", params=["one project", "several projects in one folder"])
def package(tmp_path_factory, request):
    """Real projects of some fifty files each, without what other tools know of them."""
    folder = tmp_path_factory.mktemp("typing")
    if request.param == "one project":
        _copy(PACKAGE, folder)
    else:
        for name, inside in (("io", PACKAGE), ("language", SECOND)):
            (folder / name).mkdir()
            _copy(inside, folder / name)
    return folder


def _copy(package, folder):
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text(f"[project]\nname = '{package}-typed'\n")


def findings(report):
    return sorted((one.code, one.span, one.message, one.confidence, one.reasons, one.fix) for one in report.findings)


def typed_into(package, moves):
    """Type, look in a hurry and then at all, and compare each time with a check that starts again.

    Before each look at all there is one that is given up, as by a keystroke, after a few files.
    """
    request = CheckRequest(cwd=package, cache=False, jobs=1)
    looking = FolderChecker(request)
    texts: dict[Path, str] = {}
    files = sorted(package.rglob("*.py"))
    for kind, which, where, is_looked_at in moves:
        pattern, instead = EDITS[kind]
        fitting = [file for file in files if re.search(pattern, texts.get(file) or file.read_text())]
        if not fitting:
            continue
        file = fitting[which % len(fitting)]
        before = texts.get(file) or file.read_text()
        places = list(re.finditer(pattern, before))
        place = places[where % len(places)]
        text = before[: place.start()] + place.expand(instead) + before[place.end() :]
        buffers = {path: data.encode() for path, data in {**texts, file: text}.items()}
        looking.look(buffers, hurry=True)
        if not is_looked_at:  # typed on before the dependents were looked at
            texts[file] = text
            continue
        questions = itertools.count(where % 3 - 1)
        looking.look(buffers, is_wanted=lambda questions=questions: next(questions) < 3)
        settled = looking.look(buffers)
        if settled.broken:  # then what it last said counts, and only this look knows that
            looking.look({path: data.encode() for path, data in texts.items()}, hurry=True)
            continue
        texts[file] = text
        prepared = prepare(request)
        overlay = {path.relative_to(package).as_posix(): data for path, data in buffers.items()}
        fresh = check(prepared._replace(overlay=overlay))
        assert findings(settled.report) == findings(fresh), (kind, file, place.span())


QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)


@pytest.fixture(autouse=True)
def _every_project_is_large(monkeypatch):
    monkeypatch.setattr(checker_module, "_MANY", 1)
    monkeypatch.setattr(silent_functions, "_WORTH", 0)


@settings(QUIET, max_examples=3)
@given(moves=edits)
def test_same_as_a_fresh_check(package, moves):
    """Also where several edits come before anybody looks at what depends on them."""
    typed_into(package, moves)


@pytest.mark.soak
@settings(QUIET, max_examples=150, derandomize=False)
@given(moves=edits)
def test_same_as_a_fresh_check_for_long(package, moves):
    """The same, with many more edits."""
    typed_into(package, moves)


def test_a_look_that_is_given_up(package):
    """It ends between two files, keeps nothing, and the next one finds what it would have found."""
    looking = FolderChecker(CheckRequest(cwd=package, cache=False, jobs=1))
    (file,) = package.rglob("abc/_resources.py")
    text = file.read_text()
    looking.look({})
    buffers = {file: text.replace("async def aclose", "def aclose").encode()}
    assert looking.look(buffers, hurry=True) is not None
    owed, kept = dict(looking.memory.owed), looking.memory.kept
    asked = []
    assert looking.look(buffers, is_wanted=lambda: len(asked) < 2 and not asked.append(1)) is None
    assert len(asked) == 2
    assert (looking.memory.owed, looking.memory.kept.findings) == (owed, kept.findings)
    settled = looking.look(buffers)
    prepared = prepare(looking.request)
    overlay = {file.relative_to(package).as_posix(): buffers[file]}
    assert findings(settled.report) == findings(check(prepared._replace(overlay=overlay)))
