"""Check out real projects, each at one commit, and record what is found in them.

A project is recorded as `troth check` reports it, and with all rules and without what comments and settings hide: as it
is, and twice with awaits removed. The digest of what was read stands in the record, so that another commit is not taken
for another answer.
"""

import io
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.same.awaits import Await, awaits_in, choose, without
from tools.same.record import Row, digest
from tools.same.troth import findings_in_tree, reported_in_tree

__all__ = ["TREES", "check_out", "record_trees"]

# Middle-sized async projects: by the name of the folder, the repository and the commit.
TREES = {
    "aiohttp": ("aio-libs/aiohttp", "495e778360d1924da63e16dba0f0d76baf56a56a"),
    "discord.py": ("Rapptz/discord.py", "1add8a0b40577186431cdb5f63f97affadab285b"),
    "fastapi": ("tiangolo/fastapi", "6d9dc39fcb3eb3bcd9c2a693683d68311d1618e0"),
    "httpx": ("encode/httpx", "ae1b9f66238f75ced3ced5e4485408435de10768"),
    "openai-agents-python": ("openai/openai-agents-python", "7f7a44f8dc0650296bd5ab6c745c9bcbaa6ac3b7"),
    "prefect": ("PrefectHQ/prefect", "ce79dd3d6cfa2b7337265498210dbc4d25bcdc98"),
    "python-sdk": ("modelcontextprotocol/python-sdk", "57394b0548d1e2dc2dce8d67d84985769df3b8bb"),
    "python-telegram-bot": ("python-telegram-bot/python-telegram-bot", "1183d401f8358d8103de9da116156c0f4bcdf602"),
    "redis-py": ("redis/redis-py", "34817ce2a2accc893a81180fe737e0c4f5ac6b0c"),
    "textual": ("Textualize/textual", "1d99508b928a771b51e1a527319c6b87dcff9e05"),
}
PLANTED = 600
_SOURCES = (".py", ".pyi", ".pyw", ".ipynb")
_READ = (*_SOURCES, ".toml", ".cfg", ".ini", ".txt", ".in", ".lock", ".gitignore")  # what `check` may look at
_PARTS = 2  # runs that the removed awaits of a project are spread over


def check_out(repositories: Path, trees: Path) -> None:
    """Unpack what is read of each project from its clone at `repositories/OWNER+NAME/repo`."""
    for name, (repository, commit) in TREES.items():
        folder = trees / name
        if folder.exists():
            continue
        git = ["git", "-C", str(repositories / repository.replace("/", "+") / "repo")]
        listed = subprocess.run([*git, "ls-tree", "-rz", "--name-only", commit], capture_output=True, check=True)
        endings = [end for end in _READ if any(p.endswith(end.encode()) for p in listed.stdout.split(b"\0"))]
        # By name, because a clone may lack large files that nobody reads.
        archive = [*git, "archive", commit, "--", *(f":(glob)**/*{end}" for end in endings)]
        packed = subprocess.run(archive, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
            files.extractall(folder, filter="data")


def record_trees(trees: Path) -> Iterator[Row]:
    """The rows of every project in the folder `trees`, whatever they are called."""
    folders = sorted(path for path in trees.iterdir() if path.is_dir())
    files = {tree: _contents(tree) for tree in folders}
    awaits = {tree: choose(_worth_removing(files[tree]), PLANTED) for tree in folders}
    shares = _shares([len(awaits[tree]) for tree in folders], PLANTED)
    for tree, share in zip(folders, shares, strict=True):
        commit = TREES[tree.name][1] if tree.name in TREES else None
        yield {"in": f"reported/{tree.name}", "commit": commit, "digest": digest(files[tree])}
        yield from ({"in": f"reported/{tree.name}", **row} for row in reported_in_tree(tree))
        untouched = findings_in_tree(tree, {})
        yield {"in": f"found/{tree.name}"}
        yield from ({"in": f"found/{tree.name}", **row} for row in untouched)
        for part in range(_PARTS):
            yield from _planted(tree, files[tree], awaits[tree][:share][part::_PARTS], part + 1, untouched)


def _planted(
    tree: Path, files: dict[str, bytes], awaits: Sequence[Await], part: int, untouched: Sequence[Row]
) -> Iterator[Row]:
    """What is found without these awaits, beyond what is found in any case; and for each await, by which rules."""
    paths = {place.path for place in awaits}
    overlay = {path: without(files[path], [place for place in awaits if place.path == path]) for path in paths}
    name = f"planted/{tree.name}/{part}"
    rows = [row for row in findings_in_tree(tree, overlay) if row not in untouched]
    yield {"in": name, "digest": digest(overlay)}
    for place in sorted(awaits):
        lines = range(place.line, place.last_line + 1)
        hits = [row for row in rows if row["path"] == place.path and row["line"] in lines]
        codes = sorted({f"{row['code']} {row['confidence']}" for row in hits})
        yield {"in": name, "await": f"{place.path}:{place.line}", "found by": codes}
    yield from ({"in": name, **row} for row in rows)


def _contents(tree: Path) -> dict[str, bytes]:
    return {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in sorted(tree.rglob("*"))
        if path.name.endswith(_READ) and path.is_file()
    }


def _worth_removing(files: dict[str, bytes]) -> Iterator[Await]:
    """The awaits of the project itself, not those of its tests."""
    for path, data in files.items():
        if path.endswith(".py") and "test" not in path:
            yield from awaits_in(path, data)


def _shares(available: Sequence[int], n: int) -> list[int]:
    """How many each project gives, as equal as can be."""
    shares = [0] * len(available)
    order = sorted(range(len(available)), key=lambda place: (available[place], place))
    for count, place in enumerate(order):
        shares[place] = min(available[place], (n - sum(shares)) // (len(order) - count))
    return shares
