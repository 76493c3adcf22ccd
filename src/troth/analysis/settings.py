"""What a project may say about how it is checked, in `[tool.troth]` of `pyproject.toml` or in `troth.toml`.

`settings.schema.json` beside this module describes the same table for editors; a test holds both together.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from troth.analysis.findings import Confidence
from troth.analysis.project.globs import Globs, parse
from troth.errors import MisuseError

__all__ = [
    "KEYS",
    "Patterns",
    "Settings",
    "find_settings",
    "read_config_file",
    "read_inline_settings",
    "read_settings",
    "settings_in",
]

FILES = ("troth.toml", "pyproject.toml")  # where both stand in one folder, the first is meant


class Patterns(NamedTuple):
    """Patterns and the folder they start from."""

    folder: Path
    lines: tuple[str, ...]

    def match(self, path: Path) -> bool:
        """Whether they match the file at the absolute `path`, or a folder it lies in."""
        if not path.is_relative_to(self.folder):
            return False
        return _compiled(self.lines).hides(path.relative_to(self.folder).as_posix())

    def says(self, path: Path, *, folder: bool) -> bool:
        """Whether they match just this file or folder."""
        if not path.is_relative_to(self.folder) or path == self.folder:
            return False
        return bool(_compiled(self.lines).says(path.relative_to(self.folder).as_posix(), folder=folder))


@cache
def _compiled(lines: tuple[str, ...]) -> Globs:
    return parse(lines)


class Settings(NamedTuple):
    """What settings files say; None where they say nothing. `files` are those that were read, nearest first."""

    files: tuple[Path, ...] = ()
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exclude: Patterns | None = None
    per_file_ignores: tuple[tuple[Patterns, tuple[str, ...]], ...] | None = None
    confidence: Confidence | None = None
    baseline: Path | None = None
    python: str | None = None
    source_roots: tuple[Path, ...] | None = None
    cache_dir: Path | None = None
    force_exclude: bool | None = None
    foreign_comments: bool | None = None

    def or_else(self, wider: "Settings") -> "Settings":
        """These settings, with those of a wider folder where these say nothing."""
        both: dict[str, Any] = {name: _either(getattr(self, name), getattr(wider, name)) for name in _NAMES}
        return Settings(files=self.files + wider.files, **both)

    def place_of(self, word: str) -> str:
        """Where a text stands in these files, as `file:line`; the nearest file where none says it in so many words."""
        for file in self.files:
            is_ours = file.name != "pyproject.toml"  # there, only from our table on
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                is_ours = is_ours or (line.lstrip().startswith("[") and "troth" in line)
                if is_ours and (f'"{word}"' in line or f"'{word}'" in line):
                    return f"{file}:{number}"
        return str(self.files[0]) if self.files else "`--config`"


class _Place(NamedTuple):
    """A table in a file, for messages that can be clicked."""

    file: Path
    text: str
    table: str  # "tool.troth", or "" for the whole of `troth.toml`
    name: str = ""  # of what stands in no file

    def line_of(self, key: str) -> int:
        """The line of `key` in the table; 1 where it is written in a way that only TOML itself understands."""
        import re

        header = ""
        for number, line in enumerate(self.text.splitlines(), 1):
            if match := re.match(r"\s*\[\[?([^\]]+)\]", line):
                header = path = _unquoted(match[1])
            elif match := re.match(r"\s*([^#=]+?)\s*=", line):
                path = f"{header}.{_unquoted(match[1])}".strip(".")
            else:
                continue
            if f"{path}.".startswith(f"{self.table}.".lstrip(".")) and f".{key}." in f".{path}.":
                return number
        return 1

    def wrong(self, key: str, why: str, advice: str) -> MisuseError:
        return MisuseError(
            f"{self.name or f'{self.file}:{self.line_of(key)}'}: {why}\n"
            f"Nothing was checked, because the settings are unclear.\n{advice}"
        )


def _unquoted(name: str) -> str:
    return name.replace('"', "").replace("'", "").replace(" ", "")


def settings_in(folder: Path) -> Settings | None:
    """The settings that stand in `folder` itself, if there are any."""
    for name in FILES:
        settings = read_settings(folder / name)
        if settings is not None:
            return settings
    return None


def find_settings(start: Path, by_folder: dict[str, Settings] | None = None) -> Settings:
    """Gather the settings from `start` upwards: for each key the nearest file that has it wins.

    `by_folder` has what was read already, for whoever asks for many folders of one tree; it is added to.
    """
    by_folder = {} if by_folder is None else by_folder
    name = str(start)
    if name not in by_folder:
        own = settings_in(start)
        wider = Settings() if start.parent == start else find_settings(start.parent, by_folder)
        by_folder[name] = wider if own is None else own.or_else(wider)
    return by_folder[name]


def read_settings(file: Path, *, whole: bool | None = None) -> Settings | None:
    """Read one file; None if it is not there or says nothing about Troth.

    `whole` says that all of it is about Troth, as is `troth.toml`.
    """
    try:
        data = file.read_bytes()
    except OSError:
        return None
    whole = file.name == "troth.toml" if whole is None else whole
    is_utf_16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # as PowerShell writes it
    if not whole and not is_utf_16 and b"troth" not in data:
        return None
    import tomllib

    try:
        text = data.decode()
        document = tomllib.loads(text)
    except UnicodeDecodeError as problem:
        raise MisuseError(
            f"{file}: this file is not UTF-8{', but UTF-16' if is_utf_16 else ''}, and TOML has to be.\n"
            "Nothing was checked, since the settings in it may matter.\n"
            "Save it as UTF-8: no other tool can read it either."
        ) from problem
    except tomllib.TOMLDecodeError as problem:
        raise MisuseError(
            f"{file}:{_line_in(str(problem), data)}: this is not TOML: {problem}\n"
            "Nothing was checked, since the settings in it may matter.\n"
            "Repair the file: no other tool that reads it can do so either."
        ) from problem
    table: object = document if whole else _inner(document, "tool", "troth")
    if table is None:
        return None
    place = _Place(file, text, "" if whole else "tool.troth")
    if not isinstance(table, dict):
        raise place.wrong("troth", f"`tool.troth` is {table!r}; it must be a table.", "Write `[tool.troth]`.")
    return Settings(files=(file,), **_values(table, place))


def read_config_file(file: Path) -> Settings:
    """Read a file that was named: a `pyproject.toml`, or one of any name that is written like `troth.toml`."""
    if not file.is_file():
        raise MisuseError(
            f"`--config {file}`: there is no such file.\n"
            "Nothing was checked.\n"
            "Name a settings file, or write a setting: `--config 'confidence = \"certain\"'`."
        )
    return read_settings(file, whole=file.name != "pyproject.toml") or Settings(files=(file,))


def read_inline_settings(text: str, folder: Path) -> Settings:
    """Read settings that were written on the command line, in TOML; paths in them start from `folder`."""
    import tomllib

    name = f"`--config {text}`"
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise MisuseError(
            f"{name}: this is neither a file nor TOML: {problem}\n"
            "Nothing was checked.\nWrite for instance `--config 'confidence = \"certain\"'`."
        ) from problem
    return Settings(**_values(table, _Place(folder / "troth.toml", text, "", name)))


def _values(table: dict[str, Any], place: _Place) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        reader = KEYS.get(key)
        if reader is None:
            raise place.wrong(key, f"There is no setting {key!r}.", _nearest(key, place.file.name))
        values[key.replace("-", "_")] = reader(key, value, place)
    return values


def _either(own: object, wider: object) -> object:
    return wider if own is None else own


def _nearest(key: str, file: str) -> str:
    from difflib import get_close_matches

    if key == "tool":
        return f"Remove `[tool.troth]`: only `pyproject.toml` needs it. In `{file}` the settings stand by themselves."
    near = get_close_matches(key.replace("_", "-"), KEYS, n=1, cutoff=0.75)
    listing = f"The settings are: {', '.join(KEYS)}."
    return f"Did you mean {near[0]!r}? {listing}" if near else listing


def _inner(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _line_in(message: str, data: bytes) -> int:
    """The line that a complaint of the TOML reader names; it calls the last one the end of the document."""
    import re

    match = re.search(r"line (\d+)", message)
    return int(match[1]) if match else max(1, len(data.splitlines()))


def _texts(key: str, value: object, place: _Place) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise place.wrong(key, f"`{key}` is {value!r}; it must be a list of strings.", f'Write `{key} = ["…", "…"]`.')


def _text(key: str, value: object, place: _Place) -> str:
    if isinstance(value, str) and value:
        return value
    raise place.wrong(key, f"`{key}` is {value!r}; it must be a string.", f'Write `{key} = "…"`.')


def _path(key: str, value: object, place: _Place) -> Path:
    return place.file.parent / _text(key, value, place)


def _yes_or_no(key: str, value: object, place: _Place) -> bool:
    if isinstance(value, bool):
        return value
    raise place.wrong(key, f"`{key}` is {value!r}, which is neither true nor false.", f"Write `{key} = true`.")


def _confidence(key: str, value: object, place: _Place) -> Confidence:
    if value in ("certain", "likely"):
        return value
    raise place.wrong(
        key, f"`{key}` is {value!r}.", 'Write "certain" for what is certain alone, or "likely" for all (the default).'
    )


def _patterns(key: str, value: object, place: _Place) -> Patterns:
    return Patterns(place.file.parent, _texts(key, value, place))


def _paths(key: str, value: object, place: _Place) -> tuple[Path, ...]:
    return tuple(place.file.parent / path for path in _texts(key, value, place))


def _python(key: str, value: object, place: _Place) -> str:
    name = _text(key, value, place)
    beside = place.file.parent / name
    return str(beside) if beside.exists() else name


def _ignores(key: str, value: object, place: _Place) -> tuple[tuple[Patterns, tuple[str, ...]], ...]:
    if isinstance(value, dict):
        return tuple(
            (Patterns(place.file.parent, (pattern,)), _texts(pattern, names, place)) for pattern, names in value.items()
        )
    raise place.wrong(
        key, f"`{key}` is {value!r}; it must be a table.", f'Write `[tool.troth.{key}]` and `"tests/**" = ["TR101"]`.'
    )


KEYS: dict[str, Callable[[str, object, _Place], object]] = {
    "select": _texts,
    "extend-select": _texts,
    "ignore": _texts,
    "exclude": _patterns,
    "per-file-ignores": _ignores,
    "confidence": _confidence,
    "baseline": _path,
    "python": _python,
    "source-roots": _paths,
    "cache-dir": _path,
    "force-exclude": _yes_or_no,
    "foreign-comments": _yes_or_no,
}
_NAMES = tuple(key.replace("-", "_") for key in KEYS)
