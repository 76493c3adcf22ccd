"""Many files are changed as one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from troth.analysis.edits import write
from troth.analysis.edits.write import Change, begin, recover, undo
from troth.errors import MisuseError, RunError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_bytes(f"# {name}\r\n".encode())
    return tmp_path


def changes(tree: Path) -> list[Change]:
    return [Change(name, (tree / name).read_bytes(), b"# new\r\n") for name in ("a.py", "b.py", "c.py")]


def contents(tree: Path) -> list[bytes]:
    return [(tree / name).read_bytes() for name in ("a.py", "b.py", "c.py")]


def leftovers(tree: Path) -> list[str]:
    return sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file() and p.suffix != ".py")


def test_kept(tree):
    """The new bytes are there to the letter, and nothing else is left behind but what `undo` needs."""
    begin(tree, changes(tree)).keep()
    assert contents(tree) == [b"# new\r\n"] * 3
    last = [f".troth_cache/last-change/{name}" for name in ("0", "1", "2", "manifest.json")]
    assert leftovers(tree) == [".troth_cache/.gitignore", *last, ".troth_cache/lock"]


def test_taken_back_later(tree):
    """All of it, modes and all; and back again."""
    before = contents(tree)
    begin(tree, changes(tree)).keep()
    assert undo(tree) == ["a.py", "b.py", "c.py"]
    assert contents(tree) == before
    assert undo(tree) == ["a.py", "b.py", "c.py"]
    assert contents(tree) == [b"# new\r\n"] * 3


def test_only_the_last_change_can_be_taken_back(tree):
    """One that was undone at once, or cut short, is no change."""
    begin(tree, changes(tree)).keep()
    begin(tree, [Change("a.py", b"# new\r\n", b"# newer\n")]).undo()
    assert undo(tree) == ["a.py", "b.py", "c.py"]


def test_undone(tree):
    """As if it had never been."""
    before = contents(tree)
    begin(tree, changes(tree)).undo()
    assert contents(tree) == before
    assert leftovers(tree) == [".troth_cache/.gitignore", ".troth_cache/lock"]


def test_a_file_that_changed_meanwhile_stops_everything(tree):
    """Not one file is written, and the message names the one that moved."""
    planned = changes(tree)
    (tree / "b.py").write_bytes(b"# mine\n")
    before = contents(tree)
    with pytest.raises(MisuseError, match=r"b\.py: changed on disk"):
        begin(tree, planned)
    assert contents(tree) == before


def test_a_file_that_cannot_be_written_takes_all_back(tree, monkeypatch):
    """The first two are put back when the third fails."""
    before = contents(tree)
    real = write._replace

    def full(path, data):
        if path.name == "c.py" and data == b"# new\r\n":
            raise OSError(28, "No space left on device", str(path))
        real(path, data)

    monkeypatch.setattr(write, "_replace", full)
    with pytest.raises(RunError, match=r"No space left(.|\n)*restored"):
        begin(tree, changes(tree))
    assert contents(tree) == before


@pytest.mark.parametrize("at", range(1, 8))
def test_killed_half_way(tree, at):
    """SIGKILL before the n-th write of the process: the next start puts everything back, or nothing was touched."""
    before = contents(tree)
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from troth.analysis.edits import write\n"
        "real, left = write._write, [int(sys.argv[2])]\n"
        "def counted(path, data):\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    real(path, data)\n"
        "write._write = counted\n"
        "root = Path(sys.argv[1])\n"
        "names = ('a.py', 'b.py', 'c.py')\n"
        "write.begin(root, [write.Change(n, (root / n).read_bytes(), b'# new\\r\\n') for n in names])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tree, str(at)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    recover(tree)
    assert contents(tree) == before
    assert not (tree / ".troth_cache/unfinished").exists()
    assert not list(tree.glob(".*.troth"))


def test_a_read_only_file_stops_everything(tree):
    """Who took away the leave to write meant it, root or not; the others are not written either."""
    before = contents(tree)
    (tree / "b.py").chmod(0o444)
    with pytest.raises(MisuseError, match=r"b\.py: may not be written(.|\n)*chmod u\+w"):
        begin(tree, changes(tree))
    assert contents(tree) == before
    assert not (tree / ".troth_cache/unfinished").exists()


def test_two_at_once(tree):
    """The second is refused while the first is under way, and its unfinished files are not taken for leftovers."""
    first = begin(tree, changes(tree))
    for second in (lambda: begin(tree, changes(tree)), lambda: recover(tree)):
        with pytest.raises(MisuseError, match="Another `troth` is changing this project"):
            second()
    first.keep()
    assert contents(tree) == [b"# new\r\n"] * 3
    begin(tree, changes(tree)).keep()


def test_an_edit_made_after_the_kill_is_not_lost(tree):
    """The user's file is left alone, and the message says where the original lies."""
    begin(tree, changes(tree)).lock.release()  # neither kept nor undone: the process died here
    (tree / "b.py").write_bytes(b"# mine\n")
    with pytest.raises(RunError, match=r"b\.py \(original: \.troth_cache/unfinished/1\)"):
        recover(tree)
    assert contents(tree) == [b"# a.py\r\n", b"# mine\n", b"# c.py\r\n"]


@pytest.mark.skipif(os.name == "nt", reason="modes and links are POSIX here")
def test_modes_and_links_stay(tree):
    """An executable stays one, and a link still points where it did."""
    (tree / "a.py").chmod(0o755)
    (tree / "link.py").symlink_to("b.py")
    begin(tree, [Change("a.py", b"# a.py\r\n", b"x"), Change("link.py", b"# b.py\r\n", b"y")]).keep()
    assert (tree / "a.py").stat().st_mode & 0o777 == 0o755
    assert (tree / "link.py").is_symlink()
    assert (tree / "b.py").read_bytes() == b"y"
