"""Notebooks are really read: findings carry the cell, and lines count in it."""

import json
import sys

import pytest

SAVE = "async def save(): ...\n"
MAIN = "x = 1\nasync def main():\n    save()\n"


def notebook(*cells, language="python"):
    """Code cells, each a text; a list is one whose source is a list of lines; markdown stands before them."""
    made = [{"cell_type": "markdown", "source": "# save()", "metadata": {}}]
    made += [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    metadata = {"language_info": {"name": language}}
    return json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5, "metadata": metadata})


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        pytest.param([SAVE, MAIN], (2, 3, 5), id="across cells"),
        pytest.param(
            [[*SAVE.splitlines(keepends=True)], MAIN.splitlines(keepends=True)], (2, 3, 5), id="lists of lines"
        ),
        pytest.param(["%load_ext x\n!ls\n" + SAVE, "%%time\n" + MAIN], (2, 4, 5), id="magics"),
        pytest.param([SAVE, "files = !ls\nsave?\n" + MAIN], (2, 5, 5), id="magics with a value, and help"),
        pytest.param([SAVE, "!pip install a \\\n    b \\\n  c\n" + MAIN], (2, 6, 5), id="a command that goes on"),
        pytest.param([SAVE, 'pip install "a[b]>=2"\ncd ..\n' + MAIN], (2, 5, 5), id="magics without a sign"),
        pytest.param([SAVE, "x = (\n    cp - cv\n    / mv\n)\n" + MAIN], (2, 7, 5), id="names of magics in Python"),
        pytest.param([SAVE, "%%bash\nsave() {\n", MAIN], (3, 3, 5), id="a cell in another language"),
        pytest.param([SAVE, "await save()\nsave()"], (2, 2, 1), id="at the top level of a cell"),
        pytest.param([SAVE, 'x = """\n!ls\n%time\n"""\n' + MAIN], (2, 7, 5), id="what looks like magics in a string"),
        pytest.param([SAVE, "x = '''it\\\\'s'''  # '''\n!ls\n" + MAIN], (2, 5, 5), id="a magic after a string"),
        pytest.param([SAVE, "print 'no'\nx = (", MAIN], (3, 3, 5), id="a cell that is no Python"),
        pytest.param([SAVE, "lambda x: = 1", "!ls\n" + MAIN, "def f(:"], (3, 4, 5), id="two cells that are no Python"),
    ],
)
def test_a_finding_in_a_notebook(cells, place, project):
    """By code cell, counted from 1, and line in it; its fix changes the cell's text inside the JSON, and nothing else."""
    text = notebook(*cells)
    project.write({"n.ipynb": text})
    (found,) = json.loads(project.troth("check", "n.ipynb", "--output-format", "json").out)["findings"]
    assert (found["cell"], found["line"], found["column"]) == place
    assert found["reason"][-1]["text"].endswith(", in cell 1")
    (edit,) = found["fix"]["edits"]
    fixed = text[: edit["start"]] + edit["text"] + text[edit["end"] :]
    before, after = (json.loads(one)["cells"][place[0]]["source"] for one in (text, fixed))
    assert "".join(after) == "".join(before)[::-1].replace("save()"[::-1], "await save()"[::-1], 1)[::-1]
    assert project.troth("check").out.startswith(f"n.ipynb#{place[0]}:{place[1]}:{place[2]}  ")


@pytest.mark.parametrize(
    ("cells", "language"),
    [
        pytest.param([SAVE, "await save()"], "python", id="awaited at the top level"),
        pytest.param([SAVE, MAIN], "julia", id="another language"),
        pytest.param([], "python", id="no cells"),
        pytest.param([SAVE, "SELECT * FROM save;"], "python", id="a cell that is no Python"),
        pytest.param(['"""\n!save\n"""', "x = '''\n\n%save()\n'''"], "python", id="strings that look like magics"),
    ],
)
def test_a_clean_notebook(cells, language, project):
    """Is counted as checked."""
    project.write({"n.ipynb": notebook(*cells, language=language)})
    done = project.troth("check")
    assert (done.code, done.out) == (0, "All clear: 1 file checked\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "invalid JSON at line 1, column 1", id="empty"),
        pytest.param(b'{"cells": [\n', "invalid JSON at line 2, column 1", id="cut off"),
        pytest.param(b'{"name": "\xff"}', "it is not UTF-8", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "its JSON is nested too deeply", id="deep"),
        pytest.param(b'{"a": 1}', "it has no list of cells", id="other JSON"),
    ],
)
def test_why_it_is_no_notebook(data, why, project):
    """Is told with the reason, and with the place where the JSON is wrong."""
    project.write({"n.ipynb": data})
    (finding,) = json.loads(project.troth("check", "--output-format", "json").out)["findings"]
    assert finding["code"] == "TR001"
    assert finding["message"] == f"this file cannot be read, so nothing in it is checked: not a valid notebook: {why}"


@pytest.mark.parametrize(
    ("language", "told"),
    [("sql", 0), ("yaml", 0), ("plaintext", 0), ("python", 1), ("polyglot-notebook.ipython", 1), (None, 1)],
)
def test_a_cell_that_declares_its_language(language, told, project):
    """Python is read; any other language is not, even where it looks like Python."""
    document = json.loads(notebook(SAVE, MAIN))
    document["cells"][2]["metadata"] = {"vscode": {"languageId": language} if language else "?"}
    project.write({"n.ipynb": json.dumps(document)})
    done = project.troth("check", "--output-format", "json")
    assert [one["rule"] for one in json.loads(done.out)["findings"]] == ["unawaited-coroutine"] * told
    assert done.code == told


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        pytest.param(["import asyncio\nasyncio.run(save())"], ["TR601"], id="asyncio.run"),
        pytest.param(
            ["import asyncio\nasyncio.get_event_loop().run_until_complete(save())"], ["TR601"], id="run_until_complete"
        ),
        pytest.param(
            ["import asyncio\nif __name__ == '__main__':\n    asyncio.run(save())"], ["TR601"], id="as in a script"
        ),
        pytest.param(["import asyncio\ndef go():\n    asyncio.run(save())\n", "go()"], ["TR601"], id="in a function"),
        pytest.param(["import asyncio\ndef go():\n    asyncio.run(save())\n"], [], id="in a function nobody calls"),
        pytest.param(["import asyncio, nest_asyncio\nnest_asyncio.apply()\nasyncio.run(save())"], [], id="nested"),
        pytest.param(
            ["import asyncio\ntry:\n    asyncio.get_running_loop()\nexcept RuntimeError:\n    asyncio.run(save())"],
            [],
            id="where it is asked first",
        ),
        pytest.param(["import time\ntime.sleep(1)"], [], id="a blocking call holds up nobody"),
    ],
)
def test_a_loop_in_a_cell(cells, codes, project):
    """Jupyter runs cells in a loop, so that another one cannot be started there."""
    project.write({"n.ipynb": notebook(SAVE, *cells)})
    done = project.troth("check", "n.ipynb", "--output-format", "json")
    assert [found["code"] for found in json.loads(done.out)["findings"]] == codes


def test_the_patch_of_another_notebook_allows_nothing_here(project):
    """Each notebook has a kernel of its own; a module that patches asyncio does so for all who import it."""
    start = notebook(SAVE, "import asyncio\nasyncio.run(save())")
    project.write({"a.ipynb": start, "b.ipynb": notebook(SAVE, "import nest_asyncio\nnest_asyncio.apply()")})
    found = json.loads(project.troth("check", "--output-format", "json").out)["findings"]
    assert [(one["code"], one["path"]) for one in found] == [("TR601", "a.ipynb")]
    project.write({"setup_loops.py": "import nest_asyncio\nnest_asyncio.apply()\n"})
    assert json.loads(project.troth("check", "--output-format", "json").out)["findings"] == []


def test_a_loop_in_a_cell_is_awaited_instead(project):
    """The fix is what one writes in a notebook."""
    project.write({"n.ipynb": notebook(SAVE, "import asyncio\nx = asyncio.run(save())")})
    assert project.troth("fix").code == 0
    assert "x = await save()" in (project.root / "n.ipynb").read_text()


def test_a_reason_in_a_later_cell(project):
    """The second place is told by cell as well."""
    project.write({"n.ipynb": notebook("x = 1\ny = 2", "z = 3\n" + SAVE, MAIN)})
    (found,) = json.loads(project.troth("check", "--output-format", "json").out)["findings"]
    assert found["reason"] == [{"text": "`save` is `async def`, in cell 2", "path": "n.ipynb", "line": 2}]


def test_a_cell_that_does_not_parse(project):
    """It is left out; the other cells and files are checked, and the cell alone is no reason to fail."""
    project.write({"n.ipynb": notebook(SAVE, "x = 1\ndef (:\n", MAIN), "a.py": SAVE + MAIN})
    found = json.loads(project.troth("check", "--output-format", "json").out)["findings"]
    assert [(one["rule"], one.get("cell"), one["line"]) for one in found] == [
        ("unawaited-coroutine", None, 4),
        ("unawaited-coroutine", 3, 3),
    ]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python knows the syntax")
def test_a_notebook_in_newer_syntax(project, monkeypatch, tmp_path):
    """Where no newer Python is at hand it is no finding and is not called clean; it is told in one line."""
    for variable in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "PATH"):
        monkeypatch.setenv(variable, str(tmp_path / "empty"))
    project.write({"n.ipynb": notebook(SAVE, "def first[T](x: T) -> T: ...\n", MAIN)})
    done = project.troth("check")
    assert done.code == 2
    assert "1 file in syntax newer than Python 3.11 could not be read (n.ipynb)" in done.out
    assert "clean" in done.out.splitlines()[-1]
    assert "All clear" not in done.out


@pytest.mark.parametrize("text", ["", "{", "[]", "def f(): pass\n"])
def test_what_is_no_notebook(text, project):
    """Never passes for clean because of its name."""
    project.write({"n.ipynb": text})
    done = project.troth("check", "--output-format", "json")
    assert [one["rule"] for one in json.loads(done.out)["findings"]] == ["unreadable-file"]
    assert done.code == 1


def test_a_notebook_of_the_format_before(project):
    """Cells in worksheets are read as well."""
    cells = [{"cell_type": "code", "input": text, "language": "python"} for text in (SAVE, MAIN)]
    project.write({"n.ipynb": json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3, "metadata": {}})})
    assert project.troth("check").out.startswith("n.ipynb#2:3:5  TR101")


def test_a_comment_in_a_notebook(project):
    """Silences in its cell."""
    project.write({"n.ipynb": notebook(SAVE, MAIN.replace("save()", "save()  # troth: allow TR101"))})
    assert project.troth("check").out == "All clear: 1 file checked (1 silenced by `# troth: allow`)\n"


def test_a_notebook_on_stdin(project):
    """As an editor sends it."""
    project.write({"unsaved": notebook(SAVE, MAIN)})
    assert project.shell("troth check - --stdin-filename n.ipynb < unsaved").out.startswith("n.ipynb#2:3:5  TR101")
