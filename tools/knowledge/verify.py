"""Decide whether names exist in an installed package, with the parameters and under the names they are said to have.

    python verify.py QUESTIONS OUT [--prepare CODE]

QUESTIONS is a JSON list of `[name, [parameter, …]]`. Stands alone: it runs in the environment of the package.
"""

import argparse
import importlib
import inspect
import json
import sys
import warnings
from pathlib import Path


def resolve(dotted: str) -> tuple[object, object, list[str]]:
    """The object, the class it was reached through (or None), and every name it is known by."""
    parts = dotted.split(".")
    reached: object = None
    attributes: list[str] = []
    for count in range(len(parts), 0, -1):
        try:
            reached = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        attributes = parts[count:]
        break
    else:
        raise LookupError(f"no module of {dotted!r} can be imported")
    owner: object = None
    for part in attributes:
        owner = reached if isinstance(reached, type) else None
        reached = getattr(reached, part)
    names = [dotted]
    if isinstance(owner, type):
        names.append(f"{owner.__module__}.{owner.__qualname__}.{attributes[-1]}")
        definer = next((base for base in owner.__mro__ if attributes[-1] in vars(base)), owner)
        names.append(f"{definer.__module__}.{definer.__qualname__}.{attributes[-1]}")
    else:
        home, qualified = getattr(reached, "__module__", None), getattr(reached, "__qualname__", None)
        if isinstance(home, str) and isinstance(qualified, str) and "<" not in qualified:
            names.append(f"{home}.{qualified}")
    return reached, owner, list(dict.fromkeys(names))


def answer(name: str, parameters: list[str]) -> dict[str, object]:
    """Whether the name is there, its other names, and what is wrong with it."""
    try:
        thing, owner, names = resolve(name)
    except Exception as error:  # noqa: BLE001 — whatever an import raises, the name is not to be had
        return {"why": f"{type(error).__name__}: {error}"[:200]}
    if parameters and (why := missing_parameter(thing, owner, parameters)):
        return {"why": why}
    return {"names": names}


def missing_parameter(thing: object, owner: object, expected: list[str]) -> str:
    """What is wrong with the wanted parameters: a position and a name must be the same one; empty if nothing is."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        return f"it has no signature: {error}"
    written = inspect.getattr_static(owner, getattr(thing, "__name__", ""), None) if owner is not None else None
    if owner is not None and inspect.isfunction(thing) and not isinstance(written, staticmethod):
        parameters = parameters[1:]
    kinds = {parameter.kind for parameter in parameters}
    names = [word for word in expected if not word.isdigit() and word != "*"]
    for name in names:
        place = next((place for place, parameter in enumerate(parameters) if parameter.name == name), None)
        if place is None:
            if inspect.Parameter.VAR_KEYWORD in kinds:
                continue
            return f"it has no parameter {name!r}; it has {', '.join(parameter.name for parameter in parameters)}"
        if (
            expected[0].isdigit()
            and parameters[place].kind is not inspect.Parameter.KEYWORD_ONLY
            and place != int(expected[0])
        ):
            return f"parameter {name!r} is at position {place}"
    return ""


def main() -> None:
    """Answer all questions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("questions")
    parser.add_argument("out")
    parser.add_argument("--prepare", default="")
    options = parser.parse_args()
    sys.argv = sys.argv[:1]
    warnings.simplefilter("ignore")
    exec(options.prepare, {})  # noqa: S102 — from the catalogue, never from outside
    questions = json.loads(Path(options.questions).read_text(encoding="utf-8"))
    answers = [answer(name, parameters) for name, parameters in questions]
    Path(options.out).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
