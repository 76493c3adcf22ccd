"""Read a notebook's code cells as one Python file, and which cell a line of it came from."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from troth.analysis.source.read import Problem, parse

__all__ = ["Notebook", "code_cells", "read_notebook"]

# Some work without `%` too. They are told from Python by two words in a row: `pip install troth`, but not `cp - cv`.
_WORD = r"""(?!(?:in|is|and|or|if|not|for|else)\b)[\w.~"']"""
_LINE_MAGIC = re.compile(
    r"^(?P<indent>\s*)(?:[%!?].*|[\w.]+\?{1,2}\s*"
    r"|(?:pip|conda|mamba|micromamba|uv|cd|ls|cat|mkdir|rm|cp|mv|load_ext|matplotlib)[ \t]+"
    rf"(?:-[\w-]+[ \t]+)?{_WORD}.*)$"
)
_ASSIGNED_MAGIC = re.compile(r"^(?P<head>\s*[\w., ]+=\s*)[%!].*$")
# Cell magics whose cell is Python all the same; any other hands the cell to another language or program.
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%px")


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of all cells as one file, and the line on which each cell begins."""

    source: str
    starts: tuple[int, ...]  # the first line of each code cell, from 1

    def cell_of(self, line: int) -> tuple[int, int]:
        """The code cell, from 1, that a line of the source belongs to, and how many lines come before that cell."""
        index = bisect_right(self.starts, line) - 1
        return index + 1, self.starts[index] - 1 if index >= 0 else 0

    @property
    def python_cells(self) -> int:
        """How many code cells hold any Python."""
        return len({self.cell_of(number)[0] for number, line in enumerate(self.source.split("\n"), 1) if line.strip()})


@lru_cache(maxsize=8)  # a notebook with findings is asked for again: for the cell, for the place of an edit
def read_notebook(data: bytes) -> Notebook:
    """The code of a notebook; one in another language has no cells for us. Raises ValueError where it is no notebook.

    Magics and shell lines become `pass`, cells in another language and cells that are no Python become nothing; line
    numbers stay as they are.
    """
    document = _document(data)
    if not _is_python(document):
        return Notebook("", ())
    cells = [_code_of(cell) for cell in _code_cells(document)]
    source = "\n".join(line for cell in cells for line in cell) + "\n"
    if cells and _is_broken(source):
        cells = [[""] * len(cell) if _is_broken("\n".join(cell)) else cell for cell in cells]
        source = "\n".join(line for cell in cells for line in cell) + "\n"
    starts: list[int] = []
    line = 1
    for cell in cells:
        starts.append(line)
        line += len(cell)
    return Notebook(source, tuple(starts))


def code_cells(data: bytes) -> list[str]:
    """The texts of a notebook's code cells as they are, in order; none if it is no notebook."""
    try:
        return [_text_of(cell) for cell in _code_cells(_document(data))]
    except ValueError:
        return []


def _document(data: bytes) -> dict[str, object]:
    """What the JSON holds; a ValueError that says why where it is no notebook."""
    import json

    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON at line {error.lineno}, column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    if isinstance(document, dict) and isinstance(document.get("cells", document.get("worksheets")), list):
        return document
    raise ValueError("it has no list of cells")


def _code_cells(document: dict[str, object]) -> Iterator[dict[str, object]]:
    """The code cells of the present format, and of the one before it, which kept them in worksheets."""
    sheets = document.get("worksheets")
    cells = [document.get("cells")]
    cells += [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
    for cell in (cell for group in cells if isinstance(group, list) for cell in group):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield cell


def _text_of(cell: dict[str, object]) -> str:
    source = cell.get("source", cell.get("input", ""))
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _code_of(cell: dict[str, object]) -> list[str]:
    """The lines of a cell as Python; empty ones where it declares another language."""
    lines = _text_of(cell).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return _without_magics(lines) if _says_python(cell) else [""] * len(lines)


def _says_python(cell: dict[str, object]) -> bool:
    """What editors note down for a cell in another language: `{"vscode": {"languageId": "sql"}}`."""
    metadata = cell.get("metadata")
    notes = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = notes.get("languageId") if isinstance(notes, dict) else None
    return not isinstance(language, str) or "python" in language.lower()


def _is_broken(source: str) -> bool:
    """Whether it is Python of no version."""
    tree = parse(source.encode(errors="surrogatepass"), top_level_await=True)
    return isinstance(tree, Problem) and not tree.newer_syntax


def _is_python(document: dict[str, object]) -> bool:
    metadata = document.get("metadata")
    for key in ("language_info", "kernelspec"):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        name = part.get("name" if key == "language_info" else "language") if isinstance(part, dict) else None
        if isinstance(name, str):
            return "python" in name.lower()
    return True


def _without_magics(lines: list[str]) -> list[str]:
    """The lines as Python: magics and shell commands become `pass`, so that every line keeps its number."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not first.startswith(_PYTHON_CELLS):
        return [""] * len(lines)
    code = []
    goes_on = False  # a command for the shell, after a backslash
    quotes = ""  # of a string that an earlier line has begun
    for line in lines:
        if goes_on:
            code.append("")
        elif quotes:
            code.append(line)
            quotes = _quotes_after(line, quotes)
            continue
        elif line.startswith("%%"):
            code.append("")
            continue
        elif magic := _LINE_MAGIC.match(line):
            code.append(f"{magic['indent']}pass")
        elif magic := _ASSIGNED_MAGIC.match(line):
            code.append(f"{magic['head']}None")
        else:
            code.append(line)
            quotes = _quotes_after(line, "")
            continue
        goes_on = line.rstrip().endswith("\\")
    return code


_IN_A_LINE = re.compile(r"""#.*|\\.|\"\"\"|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")


def _quotes_after(line: str, quotes: str) -> str:
    """The quotes of the string of several lines that is open behind a line, if one is; `quotes` was before it."""
    at = 0
    while True:
        if quotes:
            end = re.compile(rf"\\.|{quotes}").search(line, at)
            if end is None:
                return quotes
            quotes = "" if end[0] == quotes else quotes
        else:
            end = _IN_A_LINE.search(line, at)
            if end is None:
                return ""
            quotes = end[0] if end[0] in {'"""', "'''"} else ""
        at = end.end()
