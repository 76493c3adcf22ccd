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
    r"\bthereof\b|\bheed|\bin vain\b|\bunasked\b": "a common word",
    r"(?<![.'\"])\bowe[ds]?\b": "pending, to be delivered",
}
# Words for a person, where a caller, a process or a reader is meant. What `check` says of code still has them.
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
    skipped = set(_docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


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
def test_a_message_names_who_is_meant(word, better):
    """In what a command, the boundary or the runtime says; on the pages of a server people are meant."""
    pattern = re.compile(word, re.IGNORECASE)
    rooms = ("cli/", "runtime/", "bridge/", "guard/", "lsp/")
    slips = [f"{place}: {text!r}" for place, text in TEXTS if place.startswith(rooms) and pattern.search(text)]
    assert slips == [], f"write “{better}” instead"


def test_no_page_says_whoever():
    """The pages of users and of maintainers say which caller, process or reader it is."""
    slips = [
        place for place, text in TEXTS if place.startswith("docs/") and re.search(r"\bwhoever\b", text, re.IGNORECASE)
    ]
    assert slips == []
