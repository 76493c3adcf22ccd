"""Patterns are read as git reads them: each case is put to git as well."""

import subprocess

import pytest

from troth.analysis.project.globs import parse

CASES = [
    pytest.param(["*.py"], id="suffix anywhere"),
    pytest.param(["/a.py"], id="anchored to the root"),
    pytest.param(["sub/a.py"], id="a slash inside anchors too"),
    pytest.param(["sub/"], id="a folder and all below"),
    pytest.param(["a.py/"], id="a file is not a folder"),
    pytest.param(["**/deep"], id="double star before"),
    pytest.param(["sub/**"], id="double star after"),
    pytest.param(["sub/**/a.py"], id="double star between"),
    pytest.param(["*.py", "!a.py"], id="taken back"),
    pytest.param(["!a.py", "*.py"], id="the last one decides"),
    pytest.param(["sub/", "!sub/a.py"], id="not taken back from below an ignored folder"),
    pytest.param(["sub/*", "!sub/a.py"], id="taken back from a folder whose content is ignored"),
    pytest.param(["# a.py", "", "   "], id="comments and blank lines"),
    pytest.param(["\\#a.py"], id="an escaped hash"),
    pytest.param(["\\!a.py"], id="an escaped exclamation mark"),
    pytest.param(["a?.py"], id="one character"),
    pytest.param(["[ab].py"], id="a set"),
    pytest.param(["[!a].py"], id="a set turned round"),
    pytest.param(["[a-c]*.py"], id="a range"),
    pytest.param(["*"], id="everything"),
    pytest.param(["*", "!*/", "!*.py"], id="everything but"),
    pytest.param(["a.py   "], id="trailing blanks"),
    pytest.param(["sub*"], id="a star that takes files and folders"),
    pytest.param(["/*/deep"], id="a star between slashes"),
    pytest.param(["[a&&b].py", "[a||b].py", "[a~~b].py", "[[a].py"], id="sets with signs in them"),
    pytest.param(["foo**bar.py"], id="a double star that is none"),
]
PATHS = [
    "a.py", "b.py", "ab.py", "#a.py", "!a.py", "sub/a.py", "sub/b.py", "sub/deep/a.py", "sub/deep/x/b.py", "subway.py",
    "deep/a.py", "other/sub/a.py", "other/deep/b.py", "fooXbar.py",
]  # fmt: skip


@pytest.mark.parametrize("lines", CASES)
def test_patterns_mean_what_they_mean_to_git(lines, tmp_path):
    """A file is hidden by our reading of the patterns exactly where git hides it."""
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    asked = "\0".join(PATHS).encode()
    git = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"], cwd=tmp_path, input=asked, capture_output=True, check=False
    )
    theirs = {path.decode() for path in git.stdout.split(b"\0") if path}
    globs = parse(lines, (".py",))
    assert {path for path in PATHS if globs.hides(path)} == theirs


@pytest.mark.parametrize("line", ["[", "[z-a].py", "[]", "\\", "/", "!", "a[b"])
def test_a_pattern_nobody_can_read_hides_nothing_else(line):
    """Whatever stands in the file, reading it does not fail, and plain files stay."""
    assert not parse([line], (".py",)).hides("app.py")
