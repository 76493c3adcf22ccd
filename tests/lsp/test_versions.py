"""Versions of files in Markdown (`versions.md`): what is told after each, and which functions were walked again."""

import re
from pathlib import Path

import pytest

from troth.analysis.check import CheckRequest
from troth.analysis.pipeline import silent_functions
from troth.lsp.sessions import checker as checker_module
from troth.lsp.sessions.checker import FolderChecker

PAGE = Path(__file__).with_name("versions.md").read_text()


def parts():
    for part in re.split(r"(?m)^## ", PAGE)[1:]:
        title, _, body = part.partition("\n")
        yield pytest.param(body, id=title)


def steps(body):
    """The texts that are typed, and after them what is expected: pairs of both."""
    texts: dict[str, str] = {}
    wanted: dict[str, str] = {}
    for line in re.finditer(r"(?ms)^`(\S+)`:\n```python\n(.*?)```|^(told|walked): ([^\n]*)$", body):
        name, text, word, value = line.groups()
        if name is not None:
            if wanted:
                yield texts, wanted
                texts, wanted = {}, {}
            texts[name] = text
        else:
            wanted[word] = value
    yield texts, wanted


def walked_in(look):
    return {f"{function.module.name}.{function.qualname}" for function in look.program.walked}


@pytest.mark.parametrize("body", [*parts()])
def test_what_is_told_and_walked(tmp_path, monkeypatch, body):
    """The first answer and the settled one together tell that, and walk through those functions and no other."""
    monkeypatch.setattr(checker_module, "_MANY", 1)  # as in a large project
    monkeypatch.setattr(silent_functions, "_WORTH", 0)  # and in large files
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    checker = FolderChecker(CheckRequest(cwd=tmp_path, cache=False, jobs=1))
    buffers = {}
    for number, (texts, wanted) in enumerate(steps(body)):
        if number == 0:
            for name, text in texts.items():
                (tmp_path / name).write_text(text)
            look = checker.look({})
        else:
            buffers.update({tmp_path / name: text.encode() for name, text in texts.items()})
            first = checker.look(buffers, hurry=True)
            walked = walked_in(first)
            look = checker.look(buffers)
            if look.program is not first.program or look.report is not first.report:
                walked |= walked_in(look)
            if "walked" in wanted:
                assert (", ".join(sorted(walked)) or "nothing") == wanted["walked"], number
        told = [f"{one.span.path}:{one.span.line} {one.code}" for one in look.report.findings]
        assert (", ".join(sorted(told)) or "nothing") == wanted["told"], number
