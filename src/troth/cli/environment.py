"""Turn `TROTH_*` variables into the options they stand for."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence

from troth.cli.switches import switch
from troth.errors import MisuseError

__all__ = ["variable_of", "words_from_environment"]

_INSTEAD = {"--output-format": ("-o", "--output")}  # who says where reports go says which


def variable_of(option: str) -> str:
    """The variable for a long option: `TROTH_OUTPUT_FORMAT` for `--output-format`."""
    return "TROTH_" + option.lstrip("-").upper().replace("-", "_")


def words_from_environment(
    parser: argparse.ArgumentParser,
    options: Sequence[str],
    arguments: Sequence[str],
    environ: Mapping[str, str] | None = None,
) -> list[str]:
    """The words that the environment adds to a command line; an option that is among `arguments` is left out.

    A value that the option would refuse is refused here, with the name of the variable.
    """
    env = os.environ if environ is None else environ
    words = []
    for action in parser._actions:
        for option in options:
            value = env.get(variable_of(option), "")
            if option not in action.option_strings or not value or _is_given(action, arguments):
                continue
            if action.nargs == 0:
                if switch(variable_of(option), environ=env):
                    words.append(option)
                continue
            word = f"{option}={value}"
            try:
                parser.parse_known_args([word])
            except MisuseError as problem:
                raise MisuseError(
                    f"The environment variable `{variable_of(option)}` is {value!r}.\n{problem}"
                ) from None
            words.append(word)
    return words


def _is_given(action: argparse.Action, arguments: Sequence[str]) -> bool:
    names = {name for option in action.option_strings for name in (option, *_INSTEAD.get(option, ()))}
    return any(name in names for name in _options_in(arguments))


def _options_in(arguments: Sequence[str]) -> Iterator[str]:
    for word in arguments:
        if word == "--":
            return
        if word.startswith("--"):
            yield word.partition("=")[0]
        elif word.startswith("-"):
            yield word[:2]  # `-osarif:-`
