"""Show which settings apply, and which file each of them comes from."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from troth.analysis.check.prepare import Prepared
from troth.analysis.settings import KEYS, Patterns, Settings, read_settings

__all__ = ["settings_lines"]

_DEFAULTS = {
    "select": "all rules except those that are off by default",
    "extend-select": "none",
    "ignore": "none",
    "exclude": "nothing except what `.gitignore` hides",
    "per-file-ignores": "none",
    "confidence": "likely",
    "baseline": "none",
    "python": "`.venv` or `venv` of the project, then the active environment",
    "source-roots": "the ones that packaging files and packages name",
    "cache-dir": ".troth_cache in the project",
    "force-exclude": "false",
    "foreign-comments": "true",
}


def settings_lines(prepared: Prepared) -> Iterator[str]:
    """TOML: a line per setting, and behind it where it stands. Defaults are comments."""
    cwd = prepared.request.cwd
    written = _written(prepared)
    settings = written.or_else(prepared.settings)
    files = [_shown(file, cwd) for file in prepared.settings.files]
    yield f"# project: {_shown(prepared.root.path, cwd)}"
    yield f"# settings files, nearest first: {', '.join(files) or 'none'}"
    for key in KEYS:
        value = _value(settings, key)
        if key == "baseline" and value is None and prepared.baseline is not None:
            yield f"# baseline = {_toml(_shown(prepared.baseline, cwd))}  (found in the project)"
        elif value is None:
            yield f"# {key}: {_DEFAULTS[key]}"
        else:
            yield f"{key} = {_toml(value)}  # {_origin(key, written, settings.files, cwd)}"
        if key == "exclude" and prepared.request.extend_exclude:
            yield f"# also excluded: {_toml(prepared.request.extend_exclude)}  (command line)"


def _written(prepared: Prepared) -> Settings:
    """What the command line says. Rules that it adds stand with those that they are added to."""
    request, settings = prepared.request, prepared.settings
    ignore = (*(settings.ignore or ()), *request.ignore) if request.ignore else None
    also = (*(settings.extend_select or ()), *request.extend_select) if request.extend_select else None
    own = Settings(
        select=request.select,
        extend_select=also,
        ignore=ignore,
        confidence=request.confidence,
        baseline=request.baseline,
        python=request.python,
        cache_dir=request.cache_dir,
        force_exclude=request.force_exclude or None,
        foreign_comments=None if request.foreign_comments else False,
    )
    return own.or_else(prepared.configuration.first)


def _value(settings: Settings, key: str) -> object:
    return getattr(settings, key.replace("-", "_"))


def _origin(key: str, written: Settings, files: Sequence[Path], cwd: Path) -> str:
    if _value(written, key) is not None:
        return "command line"
    for file in files:
        own = read_settings(file, whole=file.name != "pyproject.toml")
        if own is not None and _value(own, key) is not None:
            return _shown(file, cwd)
    return "settings"


def _toml(value: object) -> str:
    if isinstance(value, Patterns):
        return _toml(value.lines)
    if isinstance(value, tuple):
        if value and isinstance(value[0], tuple):  # patterns, and the rules that are ignored where they match
            return f"{{ {', '.join(f'{_toml(patterns.lines[0])} = {_toml(names)}' for patterns, names in value)} }}"
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    import json

    return json.dumps(str(value), ensure_ascii=False)


def _shown(path: Path, cwd: Path) -> str:
    return os.path.relpath(path, cwd).replace(os.sep, "/") if path.is_relative_to(cwd) else str(path)
