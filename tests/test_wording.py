"""What users read is plain English: the commonest slips of ours are refused in messages, help texts and pages."""

import ast
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(importlib.import_module("troth").__file__).parent
DOCS = Path(__file__).resolve().parents[1] / "docs"
# A slip, and what to write instead.
SLIPS = {
    r"\bcannot be told\b(?! apart)": "cannot be determined",
    r"\bnobody (?:can|could) (?:tell|say)\b(?! apart)": "it is unclear",
    r"\banew\b": "again",
    r"\bfor ever\b": "forever",
    r"(?<!there )\bis no (?:port|moment|span|id|setting|address|command|decision|model|place|name|number|plain)\b": "is not a …",
    r"\b(?:to be|be|was) had\b": "available, possible",
    r"\bgive leave\b|\bleave to write\b": "allow",
    r"\bshall\b": "must, will, or the present tense",
    r"\bnobody was named\b": "No … was given.",
    r"\b(?:was|were) let in\b": "was admitted",
    r"\btells? (?:about|everything|nothing|more)\b": "explains, shows, reports",
    r"\b(?:of|in) texts\b": "of strings",
    r"\bas many as pay\b": "chosen automatically",
    r"\bthereof\b|\b(?:un)?heed|\bin vain\b|\bunasked\b|\bgood-bye\b": "a common word",
    r"\bjust now\b": "at the moment",
    r"\bfor (?:a machine|machines)\b": "as JSON",
    r"\bthose (?:that )?there are\b": "`…` lists them",
    r"\bcut short\b|\bbroke off\b": "interrupted",
    r"\bput back as they were\b": "restored",
    r"\btaken up\b": "resumed",
    r"\bletters of JSON\b|\bhalf of a letter\b": "characters",
    r"\bholds? up\b|\bheld up\b": "blocks",
    r"\bhalf done\b|\breach(?:es)? nobody\b|\bbrings? to light\b": "before it is done; is lost; reveals",
    r"\bstands? still\b": "is blocked, is suspended",
    r"\bsilence is a no\b|\bis a no\b|\ba yes\b": "a refusal, an approval",
    r"\bin flight\b": "running",
    r"\bmeans (?:nothing|something) (?:for|only|here|in)\b": "is valid only …, is not supported",
    r"(?<!there )\bis no (?:workflow|list|mapping|path|file|JSON|number of an event)\b": "is not a …",
    r"\bhas a text for a name\b|\bis a text, and\b": "a string",
    r"\bopens nothing\b": "is not valid",
    r"\bis like that\b": "matches",
    r"(?<![.'\"])\bowe[ds]?\b": "pending, to be delivered",
}
# Words for a person, where a caller, a process or a reader is meant.
OF_PEOPLE = {
    r"\bwhoever\b": "the caller, the process that …",
    r"\bsomebody\b": "another process, a caller, the passive voice",
    r"\bnobody\b(?! answered)": "no process, the passive voice",
}
READ_BY_NOBODY = {"knowledge", "testing"}  # tables, and what is given to programs under test


def _docstrings(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield id(statement.value)


def _sentences(tree):
    """The texts of a module that look like sentences: docstrings are for readers of the code, and SQL for a database."""
    skipped = {*_docstrings(tree), *_titles(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in skipped:
            skipped.update(map(id, node.values))
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def _titles(tree):
    """The titles and programs of cases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Case"):
            yield from (id(inner) for inner in ast.walk(node))


def _messages():
    for file in sorted(SOURCE.rglob("*.py")):
        if not READ_BY_NOBODY & set(file.relative_to(SOURCE).parts):
            for line, text in _sentences(ast.parse(file.read_text(encoding="utf-8"))):
                if text.count(" ") > 1:
                    yield f"{file.relative_to(SOURCE)}:{line}", text


def _pages():
    for file in sorted(DOCS.rglob("*.md")):
        if not {"api", "rules", "_build"} & set(file.relative_to(DOCS).parts):  # made of docstrings
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                yield f"docs/{file.relative_to(DOCS)}:{number}", line


def _rule_pages():
    """What the pages of rules are made of."""
    for file in sorted((SOURCE / "analysis/rules").glob("*/[!_]*.py")):
        documentation = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        for number, line in enumerate(documentation.splitlines(), start=1):
            yield f"{file.relative_to(SOURCE)}:{number}", line


TEXTS = [*_messages(), *_pages(), *_rule_pages()]


def test_there_is_something_to_look_at():
    """The collection sees messages, help texts and pages."""
    words = "\n".join(text for _, text in TEXTS)
    assert "number of worker processes" in words
    assert "No file was checked, so this is not reported as clean." in words
    assert "Write a rule" in words
    assert "a call that makes a coroutine whose value is thrown away" in words


@pytest.mark.parametrize(("slip", "better"), SLIPS.items(), ids=list(SLIPS.values()))
def test_no_slip(slip, better):
    """Each has a plain word."""
    pattern = re.compile(slip, re.IGNORECASE)
    slips = [f"{place}: {match[0]!r} in {text!r}" for place, text in TEXTS if (match := pattern.search(text))]
    assert slips == [], f"write “{better}” instead"


@pytest.mark.parametrize(("word", "better"), OF_PEOPLE.items(), ids=list(OF_PEOPLE))
def test_texts_name_who_is_meant(word, better):
    """Which caller, process or reader it is: in messages, in help texts, and on the pages of users and maintainers."""
    pattern = re.compile(word, re.IGNORECASE)
    slips = [f"{place}: {text!r}" for place, text in TEXTS if pattern.search(text)]
    assert slips == [], f"write “{better}” instead"
