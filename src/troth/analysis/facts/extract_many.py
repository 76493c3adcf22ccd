"""Read the facts of many files in several processes."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.crash import contained
from troth.analysis.facts.fast_parser import Parser, own_parser, read_quickly
from troth.analysis.facts.from_ast.extract import extract
from troth.analysis.facts.model import FileFacts
from troth.analysis.parallel import in_processes
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.read import Problem, parse

__all__ = ["Gathered", "Progress", "gather", "read_facts", "source_of"]

Gathered = dict[str, "FileFacts | bytes | Problem"]  # what another process read is packed
Progress = Callable[[int, int, str], None]  # how many files of how many are read, and which one comes now
_FREED_AT_ONCE = 24 << 20  # bytes
_WORTH_A_PARSER = 30_000  # bytes of source; for fewer its import does not pay
_WORTH_A_PROCESS = 1_000_000  # bytes of source; reading fewer takes less time than a second process needs to pay


@dataclass(frozen=True, slots=True)
class _Reader:
    root: str
    overlay: Mapping[str, bytes]

    def data(self, path: str) -> bytes:
        if path in self.overlay:
            return self.overlay[path]
        with open(f"{self.root}/{path}", "rb", buffering=0) as file:  # noqa: PTH123  thousands of them
            return file.read()

    def size(self, path: str) -> int:
        """The bytes of a file; 0 where that cannot be told."""
        if path in self.overlay:
            return len(self.overlay[path])
        try:
            return os.stat(f"{self.root}/{path}").st_size  # noqa: PTH116  thousands of them
        except OSError:
            return 0


def source_of(path: str, data: bytes) -> bytes:
    """The Python in a file. Raises ValueError for a notebook that is none."""
    return read_notebook(data).source.encode() if path.endswith(".ipynb") else data


def read_facts(path: str, data: bytes, parser: Parser | None = None) -> FileFacts | Problem:
    """The facts of one file, or why there are none; by another parser than `ast`, where one is given and able to."""
    try:
        return _read_facts(path, data, parser)
    except Exception as error:  # noqa: BLE001  a file that we fail on must not cost the others
        crash = contained(error, path, "the file was not read, so nothing in it was checked")
        return Problem(1, 1, "Troth failed to read it", crash=crash)


def _read_facts(path: str, data: bytes, parser: Parser | None) -> FileFacts | Problem:
    is_notebook = path.endswith(".ipynb")
    try:
        source = source_of(path, data)
    except (ValueError, RecursionError) as error:
        return Problem(1, 1, f"not a valid notebook: {error}")
    if parser is not None and not is_notebook and (facts := read_quickly(source, parser)) is not None:
        return facts
    tree = parse(source, top_level_await=is_notebook)
    if isinstance(tree, Problem):
        return tree
    try:
        return extract(tree, top_level_await=is_notebook)
    except (RecursionError, ValueError):  # `marshal` gives up on deep nesting with a ValueError
        return Problem(1, 1, "nested too deeply to be read")


def gather(
    root: Path,
    paths: Sequence[str],
    *,
    overlay: Mapping[str, bytes],
    jobs: int,
    progress: Progress | None = None,
    meanwhile: Callable[[Gathered], None] | None = None,
) -> Gathered:
    """The facts of `paths`, packed where another process read them, or the reason why a file has none.

    Where others read as well, who also have to pack what they read, this process does `meanwhile` with what it read
    until they are done. `progress` hears of each file, and of the end.
    """
    reader = _Reader(str(root), overlay)
    sizes = {path: reader.size(path) for path in paths}
    total = sum(sizes.values())
    if len(paths) > 1:
        _keep_pages()
    count = max(1, min(jobs, total // _WORTH_A_PROCESS))
    parser = own_parser() if total >= _WORTH_A_PARSER else None
    shares: list[list[str]] = [[] for _ in range(count)]
    loads = [0] * count
    for path in sorted(paths, key=lambda p: (-sizes[p], p)):  # the largest first, each to whoever has least
        lightest = loads.index(min(loads))
        shares[lightest].append(path)
        loads[lightest] += sizes[path]
    report = progress if progress is not None else _silent

    def piece(share: list[str], *, is_last: bool) -> Callable[[], Gathered]:
        def work() -> Gathered:
            result: Gathered = {}
            for number, path in enumerate(share):
                if is_last:
                    report(number * count, len(paths), path)
                try:
                    data = reader.data(path)
                except OSError as error:
                    result[path] = Problem(1, 1, f"it cannot be opened: {error.strerror}", is_unopened=True)
                    continue
                facts = read_facts(path, data, parser)
                # What another process read comes as bytes, which are quick to send.
                result[path] = facts if is_last or isinstance(facts, Problem) else facts.pack()
            if is_last and meanwhile is not None and count > 1:
                meanwhile(result)
            return result

        return work

    gathered: Gathered = {}
    for part in in_processes([piece(share, is_last=number == count) for number, share in enumerate(shares, 1)]):
        gathered.update(part)
    report(len(paths), len(paths), "")
    return gathered


def _keep_pages() -> None:
    """Let the C library keep the memory of one syntax tree for the next.

    What a parser frees lies at the end of the heap, and would go back to the system and come again with every file:
    three quarters of all page faults. After a large block was freed glibc takes blocks of that size for usual and gives
    back less; none of it is ever touched. Other libraries take no notice.
    """
    bytes(_FREED_AT_ONCE)


def _silent(_done: int, _total: int, _path: str) -> None:
    return
