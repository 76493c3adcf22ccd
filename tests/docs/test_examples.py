"""What the documentation shows is what happens: every block is run, and the pages are built without a warning."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from troth.testing.postgres_server import PostgresServer
from troth.testing.temporal_server import TemporalServer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "rules"} & {*path.parts}),
]

_spec = importlib.util.spec_from_file_location("troth_docs_page", HERE / "page.py")
page_runner = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = page_runner
_spec.loader.exec_module(page_runner)

NOT_RUN = {
    # page: how many of its blocks cannot be run here, each marked with its reason
    "README.md": 1,
    "docs/install.md": 2,
    "docs/design/knowledge.md": 1,
    "docs/how-to/would-my-tests-notice.md": 4,
}

NEEDS = {
    "docs/how-to/deploy-workers.md": PostgresServer,
    "docs/how-to/from-a-file-to-postgresql.md": PostgresServer,
    "docs/how-to/on-temporal.md": TemporalServer,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_do_what_they_say(page):
    """Python and shell blocks run top to bottom, in a fresh process per page."""
    blocks = page_runner.blocks_of(page.read_text(encoding="utf-8"))
    left_out = sum("not run" in block.marks for block in blocks)
    assert left_out == NOT_RUN.get(page.relative_to(ROOT).as_posix(), 0), "a block was marked `not run`, or one less is"
    if not any(block.runs for block in blocks):
        return
    server = NEEDS.get(page.relative_to(ROOT).as_posix())
    if server is not None and (missing := server.missing()) is not None:
        pytest.skip(missing)
    done = subprocess.run(
        [sys.executable, HERE / "page.py", page], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.timeout(1500)  # half a minute on a quiet machine
def test_the_documentation_builds_without_a_warning(tmp_path):
    """A dead link, an orphan page or a bad table stops the build."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", ROOT / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html/index.html").exists()


def test_a_block_that_is_a_file_shows_its_name():
    """Readers see which file a block is; `<!-- file: … -->` alone is invisible."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        from file_names import with_captions
    finally:
        sys.path.pop(0)
    page = "Write it:\n\n<!-- file: shop.py -->\n```python\nx = 1\n```\n"
    assert with_captions(page) == "Write it:\n\n```{code-block} python\n:caption: shop.py\n\nx = 1\n```\n"


def test_the_picture_of_a_finding_is_current(tmp_path):
    """It is drawn from what `troth check` prints today."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        from picture import write_finding
    finally:
        sys.path.pop(0)
    write_finding(tmp_path / "finding.svg")
    committed = ROOT / "docs" / "_static" / "finding.svg"
    assert (tmp_path / "finding.svg").read_text() == committed.read_text(), "build the docs: `make docs` draws it anew"
