"""Comments that silence: where they count, what they name, and which of them are idle."""

import json
from textwrap import dedent

import pytest

from troth.analysis.check.suppress import silence, unused
from troth.analysis.findings import Finding, Span
from troth.analysis.source.allow import allows_in

RULES = {"TR101": "unawaited-coroutine", "TR102": "assigned-coroutine"}


def finding(line: int, end_line: int | None = None, cell: int | None = None, path: str = "a.py") -> Finding:
    span = Span(path, line, 1, end_line or line, 9, cell)
    return Finding("TR101", "unawaited-coroutine", span, "message", "certain", subject="save")


@pytest.mark.parametrize(
    ("source", "line", "is_silenced"),
    [
        pytest.param("save()  # troth: allow unawaited-coroutine", 1, True, id="by name"),
        pytest.param("save()  # troth: allow TR101", 1, True, id="by code"),
        pytest.param("save()  # troth: allow TR102, TR101 it is a stub", 1, True, id="one of several, with a reason"),
        pytest.param("save()  # troth:allow TR101", 1, True, id="without a blank"),
        pytest.param("save()  # noqa # troth: allow TR101", 1, True, id="after another comment"),
        pytest.param("save()  # troth: ignore[TR101]", 1, True, id="as other tools write it"),
        pytest.param("save()  # troth: ignore[TR102,TR101] it is a stub", 1, True, id="so, one of several"),
        pytest.param("save()  # type: ignore # troth: ignore[unawaited-coroutine]", 1, True, id="so, by name"),
        pytest.param("save()  # troth: ignore TR101", 1, True, id="so, without brackets"),
        pytest.param("save()  # troth: allow[TR101]", 1, True, id="brackets in our own form"),
        pytest.param("save()  # troth: ignore", 1, False, id="so, without a rule"),
        pytest.param("save()  # troth: ignore[TR101", 1, False, id="half a bracket"),
        pytest.param("# troth: allow-file TR101 all are stubs\n\nsave()", 3, True, id="for a file"),
        pytest.param("save()\n\n\n# troth: ignore-file[TR101]", 1, True, id="for a file, at its end"),
        pytest.param("# troth: allow-file TR102\n\nsave()", 3, False, id="for a file, another rule"),
        pytest.param("# troth: allow-file\n\nsave()", 3, False, id="for a file, no rule"),
        pytest.param("# troth: allow-line TR101\nsave()", 2, False, id="no such form"),
        pytest.param("save()  # troth: allow TR102", 1, False, id="another rule"),
        pytest.param("save()  # troth: allow", 1, False, id="no rule"),
        pytest.param("save()  # noqa", 1, False, id="another tool's noqa"),
        pytest.param("save()  # type: ignore", 1, False, id="another tool's ignore"),
        pytest.param('save("# troth: allow TR101")', 1, False, id="in a string"),
        pytest.param("# troth: allow TR101\nsave()", 2, False, id="on the line above"),
        pytest.param("x = [  # troth: allow TR101\n    save(),\n]", 2, True, id="the first line of its statement"),
        pytest.param(
            "x = [\n    1,  # troth: allow TR101\n    save(),\n]", 3, False, id="another line of its statement"
        ),
        pytest.param("if save(  # troth: allow TR101\n    1\n):\n    pass", 1, True, id="a header"),
        pytest.param('x = f"""\n{save()}\n"""  # troth: allow TR101', 2, True, id="behind a string of several lines"),
        pytest.param('x = f"""\n""", save(\n), """\n"""  # troth: allow TR101', 2, False, id="behind another string"),
        pytest.param("if x:  # troth: allow TR101\n    save()", 2, False, id="a header does not speak for its body"),
        pytest.param(
            "def f():  # troth: allow TR101\n    '''d'''\n    save()", 3, False, id="nor a function for its own"
        ),
    ],
)
def test_where_a_comment_silences(source, line, is_silenced):
    """On the line of the finding, or on the first line of its statement; for the rules it names; and only ours."""
    kept, silenced, _ = silence([finding(line)], allows_in("a.py", source.encode()))
    assert (len(kept), len(silenced)) == ((0, 1) if is_silenced else (1, 0))


def test_a_comment_at_the_end_of_a_finding_of_several_lines():
    """Formatters move comments to the closing bracket."""
    source = "save(\n    1,\n)  # troth: allow TR101\n"
    _, silenced, _ = silence([finding(1, end_line=3)], allows_in("a.py", source.encode()))
    assert len(silenced) == 1


def idle(source: str, findings: list[Finding], tmp_path, **more) -> list[Finding]:
    allows = allows_in("a.py", source.encode())
    _, _, used = silence(findings, allows)
    return unused(allows, used, RULES, **more)


@pytest.mark.parametrize(
    ("source", "message", "repaired"),
    [
        pytest.param(
            "x = 1  # troth: allow TR101\n", "`# troth: allow TR101` silences nothing", "x = 1\n", id="nothing there"
        ),
        pytest.param("x = 1  # troth: allow\n", "names no rule", "x = 1\n", id="names none"),
        pytest.param("x = 1  # troth: allow TR999\n", "there is no such rule", "x = 1\n", id="no such rule"),
        pytest.param(
            "x = 1\r\nsave()  # troth: allow TR101, TR102 stub\r\n",
            "`# troth: allow TR102` silences nothing",
            "x = 1\r\nsave()  # troth: allow TR101 stub\r\n",
            id="one of two, in a file with other line ends",
        ),
        pytest.param(
            "x = 1\nsave()  # troth: ignore[TR101,TR102] stub\n",
            "`# troth: ignore[TR102]` silences nothing",
            "x = 1\nsave()  # troth: ignore[TR101] stub\n",
            id="one of two, in brackets",
        ),
        pytest.param("x = 1  # troth: ignore\n", "`# troth: ignore` names no rule", "x = 1\n", id="ignore without any"),
        pytest.param("x = 1  # troth: allow-line TR101\n", "names no rule", "x = 1\n", id="no such form"),
        pytest.param(
            "x = 1\n# troth: allow-file TR102\n", "no such finding exists in this file", "x = 1\n\n", id="a file"
        ),
        pytest.param(
            "\ufeffx = 1  # troth: allow TR101\n", "silences nothing", "\ufeffx = 1\n", id="a byte order mark"
        ),
    ],
)
def test_idle_comments_are_findings(source, message, repaired, tmp_path):
    """Each is reported once, and its fix changes the comment and nothing else."""
    (found,) = idle(source, [finding(2)], tmp_path)
    assert message in found.message
    assert (found.code, found.rule, found.confidence) == ("TR002", "unused-allow", "certain")
    (edit,) = found.fix.edits
    assert source[: edit.start] + edit.text + source[edit.end :] == repaired


def test_the_nearest_rule_is_named(tmp_path):
    """A misspelt rule is told its neighbour."""
    (found,) = idle("x = 1  # troth: allow unawaited-corutine\n", [], tmp_path)
    assert found.reasons[0].text == "no rule is called 'unawaited-corutine': did you mean 'unawaited-coroutine'?"
    (found,) = idle("x = 1  # troth: allow TR999\n", [], tmp_path)
    assert found.reasons[0].text == "no rule is called 'TR999': run `troth explain` to list the rules"


def test_a_rule_that_is_off_might_have_spoken(tmp_path):
    """A comment is not idle because its rule is switched off."""
    assert not idle("x = 1  # troth: allow TR101\n", [], tmp_path, is_on=lambda code, name: code != "TR101")


def test_a_comment_for_a_whole_notebook():
    """One cell may speak for all."""
    sources = ["save()\n", "# troth: allow-file TR101\n", "save()\n"]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    allows = allows_in("n.ipynb", json.dumps({"cells": cells}).encode())
    kept, _, _ = silence([finding(1, cell=n, path="n.ipynb") for n in (1, 3)], allows)
    assert kept == []


def test_comments_in_a_notebook():
    """They count in their cell."""
    cells = [{"cell_type": "markdown", "source": "# troth: allow TR101"}] + [
        {"cell_type": "code", "source": ["%magic\n", line]} for line in ("save()\n", "save()  # troth: allow TR101\n")
    ]
    allows = allows_in("n.ipynb", json.dumps({"cells": cells}).encode())
    kept, silenced, _ = silence([finding(2, cell=n, path="n.ipynb") for n in (1, 2)], allows)
    assert [one.span.cell for one in kept] == [1]
    assert [one.span.cell for one in silenced] == [2]


def test_a_file_that_does_not_parse():
    """Its comments still count on their own lines."""
    source = dedent("""\
        save()  # troth: allow TR101
        def (:
    """)
    _, silenced, _ = silence([finding(1)], allows_in("a.py", source.encode()))
    assert len(silenced) == 1
