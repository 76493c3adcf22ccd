"""How verified facts become the bundled semantics."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools.knowledge.build import stdlib_surface
from tools.knowledge.catalogue import Entry, entry_for
from tools.knowledge.environment import Environment, installed
from tools.knowledge.facts import Fact, read_facts
from tools.knowledge.lock import pinned
from tools.knowledge.names import Definition
from tools.knowledge.observed import Observed
from tools.knowledge.sources import Def, read_package
from tools.knowledge.surface import Surface, read_surface
from troth.analysis.knowledge import find

__all__ = ["Verdict", "build_semantics"]

_VERIFY = Path(__file__).with_name("verify.py")
_RECORD = Path(__file__).parent / "seeds" / "verified.json"
_ONLY_FOR_FACTS = {  # packages that nothing async is known of, beside what the facts say
    "requests": "requests", "urllib3": "urllib3", "websocket": "websocket-client", "paramiko": "paramiko",
    "pika": "pika", "kafka": "kafka-python", "paho": "paho-mqtt", "boto3": "boto3", "botocore": "botocore",
    "psycopg2": "psycopg2-binary", "pymysql": "pymysql", "mysql": "mysql-connector-python", "serial": "pyserial",
    "git": "gitpython", "docker": "docker", "kubernetes": "kubernetes", "selenium": "selenium",
    "cachetools": "cachetools", "stamina": "stamina", "retrying": "retrying", "wrapt": "wrapt",
    "decorator": "decorator", "deprecated": "deprecated", "opentelemetry": "opentelemetry-api",
    "sentry_sdk": "sentry-sdk", "structlog": "structlog", "pydantic": "pydantic", "attrs": "attrs",
    "typeguard": "typeguard", "beartype": "beartype", "click": "click", "typer": "typer", "huey": "huey", "rq": "rq",
    "invoke": "invoke", "schedule": "schedule", "nox": "nox", "bottle": "bottle", "falcon": "falcon",
    "pytest": "pytest", "hypothesis": "hypothesis", "freezegun": "freezegun", "responses": "responses",
    "rest_framework": "djangorestframework", "watchdog": "watchdog", "scrapy": "scrapy", "alembic": "alembic",
    "gunicorn": "gunicorn", "pandas": "pandas", "streamlit": "streamlit", "uvloop": "uvloop", "greenback": "greenback",
    "aiojobs": "aiojobs",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether reality bears a fact out: every name it goes by, or why not."""

    fact: Fact
    names: tuple[str, ...] = ()
    why: str = ""


def build_semantics(path: Path) -> Iterator[str]:
    """Verify every fact that was not verified before and write those that hold; gives a line for each that does not.

    What was verified, and the names it goes by, is kept in `verified.json` beside the seeds; take a fact out of there
    (or the whole file away) and it is asked again.
    """
    facts = read_facts()
    record: dict[str, list[str]] = json.loads(_RECORD.read_text(encoding="utf-8")) if _RECORD.exists() else {}
    record = {key: record[key] for fact in facts if (key := _key(fact)) in record}
    surface = stdlib_surface()[0]
    stdlib = {name.partition(".")[0] for name in surface.names.modules}
    open_facts = [fact for fact in facts if _key(fact) not in record]
    for top in dict.fromkeys(fact.top for fact in open_facts):
        group = [fact for fact in open_facts if fact.top == top]
        for verdict in [_by_stub(surface, fact) for fact in group] if top in stdlib else _by_import(top, group):
            if verdict.why:
                yield f"refused: {verdict.fact.section} {verdict.fact.name}: {verdict.why}"
            else:
                record[_key(verdict.fact)] = list(verdict.names)
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(record[key])}" for key in sorted(record))
        _RECORD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    held = [Verdict(fact, tuple(record[key])) for fact in facts if (key := _key(fact)) in record]
    path.write_text(_written(held), encoding="utf-8")
    yield f"semantics: {len(held)} facts of {len(facts)} hold, {path.stat().st_size} bytes"


def _key(fact: Fact) -> str:
    """A fact as far as reality can bear it out: its name, and the parameters or words that must be there."""
    return " ".join([fact.section, fact.name, *fact.parameters, *fact.words])


# the standard library speaks through its stubs: much of it has no signature at run time


def _by_stub(surface: Surface, fact: Fact) -> Verdict:
    names = surface.names
    owner, _, last = fact.name.rpartition(".")
    definition = names.find(fact.name)
    if definition is not None and definition.kind in {"class", "function"}:
        renamed = surface.kinds.annotations.renamed.get(definition.name, definition.name)
        defs = _callable(surface, definition)
        why = _missing(defs, fact.parameters, skip_first=definition.kind == "class")
        return Verdict(fact, tuple(dict.fromkeys((fact.name, renamed))), why)
    if definition is not None and definition.kind == "value":
        return Verdict(fact, (fact.name,), "" if not fact.parameters else "it has no signature")
    holder = names.find(owner)
    if holder is None or holder.kind != "class":
        return Verdict(fact, why="the stubs of the standard library have no such name")
    for base in surface.kinds.lineage(holder.name):
        source = names.class_source(base)
        assert source is not None
        if last in source.methods:
            owners = [surface.kinds.annotations.renamed.get(cls.name, cls.name) for cls in (holder, base)]
            spelled = (fact.name, *(f"{name}.{last}" for name in owners))
            static = any("staticmethod" in map(_text, node.decorator_list) for node in source.methods[last])
            why = _missing(source.methods[last], fact.parameters, skip_first=not static)
            return Verdict(fact, tuple(dict.fromkeys(spelled)), why)
    return Verdict(fact, why=f"{owner} has no {last}")


def _text(node: object) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _callable(surface: Surface, definition: Definition) -> list[Def]:
    if definition.kind == "function":
        return surface.names.modules[definition.home].functions[definition.local]
    for base in surface.kinds.lineage(definition.name):
        source = surface.names.class_source(base)
        assert source is not None
        for maker in ("__init__", "__new__", "__call__"):
            if maker in source.methods:
                return source.methods[maker]
    return []


def _missing(defs: list[Def], parameters: list[str], *, skip_first: bool) -> str:
    if not parameters:
        return ""
    for node in defs:
        positional = [arg.arg.strip("_") for arg in [*node.args.posonlyargs, *node.args.args]][1 if skip_first else 0 :]
        keyword = [arg.arg for arg in node.args.kwonlyargs]
        if parameters[0] == "*" and (node.args.vararg is not None):
            return ""
        name = parameters[-1]
        if parameters[0].isdigit():
            place = int(parameters[0])
            if place < len(positional) and (positional[place] == name or positional[place] in node_posonly(node)):
                return ""
        elif name in positional or name in keyword:
            return ""
    return f"no overload has the parameter {' '.join(parameters)}"


def node_posonly(node: Def) -> set[str]:
    """Parameters that have no name to the caller, so that any name will do for them."""
    return {arg.arg.strip("_") for arg in node.args.posonlyargs} | {
        arg.arg.strip("_") for arg in node.args.args if arg.arg.startswith("__")
    }


# everything else is asked in person


def _by_import(top: str, facts: list[Fact]) -> list[Verdict]:
    entry = entry_for(top)
    if entry is None:
        if top not in _ONLY_FOR_FACTS:
            return [Verdict(fact, why="nobody said which distribution it comes from") for fact in facts]
        entry = Entry(top, (_ONLY_FOR_FACTS[top],))
    try:
        with installed(entry, pinned(entry.top, entry.install)) as environment:
            if entry.source_only:
                return list(_by_source(environment, entry, facts))
            return list(_ask(environment, entry, facts))
    except (OSError, subprocess.CalledProcessError) as error:
        return [Verdict(fact, why=f"it could not be installed or asked: {error}") for fact in facts]


def _by_source(environment: Environment, entry: Entry, facts: list[Fact]) -> Iterator[Verdict]:
    """A package that cannot be imported here is asked through its source."""
    modules = read_package(environment.packages, entry.top, entry.only, entry.without)
    surface = read_surface(modules, Observed())
    for fact in facts:
        is_package = fact.section == "module_hooks"
        verdict = Verdict(fact, (fact.name,)) if is_package else _by_stub(surface, fact)
        why = verdict.why or _unheard(environment, entry.top, fact.words)
        yield replace(verdict, why=why)


def _ask(environment: Environment, entry: Entry, facts: list[Fact]) -> Iterator[Verdict]:
    with tempfile.TemporaryDirectory() as folder:
        questions, answers = Path(folder) / "questions.json", Path(folder) / "answers.json"
        rows = [(fact.name, fact.parameters) for fact in facts]
        questions.write_text(json.dumps(rows), encoding="utf-8")
        command = [environment.python, "-W", "ignore", str(_VERIFY), str(questions), str(answers)]
        process = subprocess.run(
            [*command, "--prepare", entry.prepare],
            check=False,
            capture_output=True,
            text=True,
            timeout=240,
            cwd=folder,
        )
        if not answers.exists():
            print(process.stderr[-600:], file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command)
        replies = json.loads(answers.read_text(encoding="utf-8"))
    for fact, reply in zip(facts, replies, strict=True):
        why = reply.get("why", "") or _unheard(environment, entry.top, fact.words)
        yield Verdict(fact, tuple(reply.get("names", ())), why)


def _unheard(environment: Environment, top: str, words: list[str]) -> str:
    """A hook that the framework calls is named somewhere in its source."""
    if not words:
        return ""
    folder = environment.packages / top
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.rglob("*.py"))]
    whole = "\n".join(texts)
    for word in words:
        stem = word.split("*")[0]
        if stem and not re.search(rf"\b{re.escape(stem)}", whole):
            return f"{word!r} is nowhere in the source of {top}"
    return ""


def _written(verdicts: list[Verdict]) -> str:
    sections: dict[str, dict[str, object]] = {
        section: {} for section in ("blocking", "runs_a_loop", "spawners", "slots", "decorators", "hooks")
    }
    modules: list[object] = []
    subjects = {(verdict.fact.section, verdict.fact.name) for verdict in verdicts}
    for verdict in verdicts:
        fact = verdict.fact
        # Definers stay out of `blocking`: a mixin's method blocks in one client and is awaited in the other.
        names = verdict.names[:2] if fact.section == "blocking" else verdict.names
        for name in dict.fromkeys([*names, *_tabled(fact.name)]):
            if name == fact.name or (fact.section, name) not in subjects:  # what is said of the base itself stays said
                _add(sections, modules, fact, name)
    lines = [f" {json.dumps(section)}: {_lines(sections[section])}" for section in sections]
    rows = ",\n".join(f"  {json.dumps(row)}" for row in modules)
    return "{\n" + ",\n".join([*lines, f' "module_hooks": [\n{rows}\n ]']) + "\n}\n"


def _tabled(name: str) -> list[str]:
    """The name that the tables give the thing: packages like to say that all of it was defined at their top."""
    owner, _, last = name.rpartition(".")
    holder, entry = find(owner), find(name)
    if holder is not None and holder.kind == "class":
        return [f"{holder.name}.{last}"]
    return [entry.name] if entry is not None and entry.kind in {"class", "function"} else []


def _add(sections: dict[str, dict[str, object]], modules: list[object], fact: Fact, name: str) -> None:
    fields = fact.fields
    match fact.section:
        case "blocking":
            sections["blocking"][name] = [fields[0], fields[1], fact.parameters]
        case "runs_a_loop" | "decorators":
            sections[fact.section][name] = fields[0]
        case "spawners":
            sections["spawners"][name] = [fact.parameters, *fields[1:]]
        case "slots":
            wants = sections["slots"].setdefault(name, {})
            assert isinstance(wants, dict)
            wants |= dict.fromkeys(fact.parameters, fields[1])
        case "hooks":
            patterns = sections["hooks"].setdefault(name, {})
            assert isinstance(patterns, dict)
            patterns |= dict.fromkeys(fact.words, fields[1])
        case _:
            row = [name, fields[0].split(), fact.words, fields[2]]
            if row not in modules:
                modules.append(row)


def _lines(section: dict[str, object]) -> str:
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(section.items()))
    return "{\n" + rows + "\n }"
