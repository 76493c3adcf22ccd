"""What `--diff` prints is what would be written."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.analysis.edits.write import Change
from troth.analysis.fix.diff import diff


def patched(tmp_path, before: bytes, after: bytes) -> bytes:
    (tmp_path / "a.py").write_bytes(before)
    patch = b"".join(diff(Change("a.py", before, after)))
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=tmp_path, input=patch, check=True, timeout=30)
    return (tmp_path / "a.py").read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"a\nb\n", b"a\nc\n", id="plain"),
        pytest.param(b"a\r\nb\r\n", b"a\r\nc\r\n", id="CRLF"),
        pytest.param(b"a\nb", b"a\nc", id="no newline at the end"),
        pytest.param(b"a\n\x0cb\n", b"a\n\x0cc\n", id="form feed"),
        pytest.param("é\nb\n".encode(), "é\nc\n".encode(), id="not ASCII"),
        pytest.param(b"# coding: latin-1\n\xe9\nb\n", b"# coding: latin-1\n\xe9\nc\n", id="not UTF-8"),
        pytest.param(b"a\rb\r", b"a\rc\r", id="CR alone"),
    ],
)
def test_git_applies_it(tmp_path, before, after):
    """The diff, applied by git to the old bytes, gives the new bytes."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert patched(tmp_path, before, after) == after


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(["a\n", "b\r\n", "c\n", "\x0c\n"]), min_size=1),
    st.lists(st.sampled_from(["a\n", "d\n", "e"])),
)
def test_any_change(tmp_path_factory, before, after):
    """Also for mixed line endings and changes at either end."""
    folder = tmp_path_factory.mktemp("any")
    subprocess.run(["git", "init", "-q", folder], check=True)
    old, new = "".join(before).encode(), "".join(after).encode() + b"z\n"
    assert patched(folder, old, new) == new
