"""Find the settings that apply to a folder, as far as the command line leaves that to the files of the project."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from troth.analysis.check.request import CheckRequest
from troth.analysis.settings import (
    Patterns,
    Settings,
    find_settings,
    read_config_file,
    read_inline_settings,
    settings_in,
)
from troth.errors import MisuseError

__all__ = ["Configuration", "configuration_of"]


class Configuration(NamedTuple):
    """Where settings come from.

    `first` is what the command line says. `only` stands in the place of all that the project's files say: the settings
    of one file that was named, or none at all.
    """

    first: Settings = Settings()
    only: Settings | None = None

    def of(self, folder: Path, by_folder: dict[str, Settings] | None = None) -> Settings:
        """The settings for what lies in `folder`; `by_folder` has those that were read already."""
        settings = find_settings(folder, by_folder) if self.only is None else self.only
        return settings if self.first == Settings() else self.first.or_else(settings)

    def within(self, folder: Path) -> Settings | None:
        """The settings that stand in `folder` itself, if those count."""
        return None if self.only is not None else settings_in(folder)


def configuration_of(request: CheckRequest) -> Configuration:
    """Read what the command line says about settings."""
    first, only = Settings(), Settings() if request.isolated else None
    files, inline = _parted(request.config, request.cwd)
    if files and request.isolated:
        raise MisuseError(
            f"`--config {files[0]}` names a settings file, and `--isolated` reads none.\n"
            "Nothing was checked.\nLeave out one of them."
        )
    if len(files) > 1:
        raise MisuseError(
            f"Two settings files are named: `{files[0]}` and `{files[1]}`.\n"
            "Nothing was checked, because it is unclear which one to use.\nName one of them."
        )
    for text in inline:
        first = read_inline_settings(text, request.cwd).or_else(first)
    if files:
        only = read_config_file(request.cwd / files[0])
    if request.exclude is not None:
        first = first._replace(exclude=Patterns(request.cwd, request.exclude))
    return Configuration(first, only)


def _parted(config: Sequence[str], cwd: Path) -> tuple[list[str], list[str]]:
    """Which of these are files, and which are settings by themselves (`confidence = "certain"`)."""
    inline = [text for text in config if "=" in text and not (cwd / text).exists()]
    return [text for text in config if text not in inline], inline
