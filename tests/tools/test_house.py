"""The figures of the house: counted where they can be counted by hand."""

import pytest

from tools import house


@pytest.fixture
def home(tmp_path):
    sources = {
        "__init__.py": "",
        "analysis/__init__.py": "",
        "analysis/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.analysis.b import B\n",
        "analysis/b.py": "def f():\n    from pkg.analysis import c\n    return c\n",
        "analysis/c.py": "import pkg.analysis.a\nimport pkg.analysis.d\n",
        "analysis/d.py": "found = 1\nnode = (1, 2)\n_ = node[0]\n__all__ = []\nx = node[found]\n",
        **{f"analysis/many/m{n}.py": "" for n in range(21)},
    }
    for path, text in sources.items():
        (tmp_path / "pkg" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pkg" / path).write_text(text, encoding="utf-8")
    return tmp_path / "pkg"


def test_the_figures_of_a_package(home):
    """Variables are what is assigned to, `_` and dunders left out; a name as an index is no positional read."""
    assert house.figures(home) == house.Figures(modules=27, lines=13, variables=3, vague=1, branching=0, positional=1)


def test_a_crowded_folder(home):
    """Folders are named from the package, with the number of their modules."""
    assert house.crowded(home) == {"analysis/many": 21}


def test_classes_of_one_name(home):
    """Public ones, at the top of a module."""
    for module in ("a", "d"):
        path = home / f"analysis/{module}.py"
        path.write_text(path.read_text(encoding="utf-8") + "class Page: ...\nclass _Own: ...\n", encoding="utf-8")
    assert house.namesakes(home) == {"Page": ["analysis/a.py", "analysis/d.py"]}


def test_a_ring_of_imports(home):
    """Imports for types and inside of functions count; what is only imported is not in the ring."""
    ring = house.ring(house.imports(home, "pkg.analysis"))
    assert ring == ["pkg.analysis.a", "pkg.analysis.b", "pkg.analysis.c"]


def test_the_table(capsys):
    """It is printed for this package."""
    assert house.main([]) == 0
    assert capsys.readouterr().out.startswith("package")
