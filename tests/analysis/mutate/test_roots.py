"""Where absolute imports start: what checkers and test runs are told."""

import pytest

from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.roots import has_namespaces, import_roots
from troth.analysis.mutate.source.text import decode


def project_of(files):
    return MutatedProject({path: decode(path, text.encode()) for path, text in files.items()}, {})


@pytest.mark.parametrize(
    ("files", "roots", "namespaces"),
    [
        pytest.param({"pkg/__init__.py": "", "pkg/a.py": ""}, (".",), False, id="a package in the root"),
        pytest.param({"src/pkg/__init__.py": "", "src/pkg/sub/__init__.py": ""}, ("src",), False, id="below src"),
        pytest.param({"app.py": "", "tools/t.py": ""}, (".", "tools"), False, id="scripts"),
        pytest.param({"pkg/__init__.py": "", "pkg/templates/x.py": ""}, (".",), False, id="templates in a package"),
        pytest.param(
            {"space/typing.py": "", "space/graph/__init__.py": "from space.graph.a import b"},
            (".",),
            True,
            id="a namespace package with a typing of its own",
        ),
        pytest.param(
            {"src/space/one/__init__.py": "import space.one", "src/space/two/__init__.py": ""},
            ("src",),
            False,
            id="a namespace package below src",
        ),
        pytest.param({"scripts/types.py": "", "pkg/__init__.py": ""}, (".",), True, id="a script that hides a library"),
    ],
)
def test_import_roots(files, roots, namespaces):
    """The directory above the topmost package, unless files import from it by its own name."""
    project = project_of(files)
    assert import_roots(project) == roots
    assert has_namespaces(project) is namespaces
