"""The oldest Python that a project says it runs on."""

import re
from pathlib import Path

from troth.analysis.project.optional_file import handwritten

__all__ = ["ANY_PYTHON", "oldest_python"]

ANY_PYTHON = 99  # of a project that does not say: whoever runs it today runs one that is supported

_REQUIRES = re.compile(r"""(?:requires-python|python_requires)\s*=\s*["']?[^"'\n]*?(?:>=?|~=|==)\s*3\.(\d+)""")
_OF_POETRY = re.compile(r"""^python\s*=\s*["'](?:\^|~|>=?|==)\s*3\.(\d+)""", re.MULTILINE)


def oldest_python(root: Path) -> int:
    """The minor version of Python 3 that the project asks for at least; `ANY_PYTHON` where it asks for none."""
    minors = [
        int(requirement[1])
        for name in ("pyproject.toml", "setup.cfg", "setup.py")
        for pattern in (_REQUIRES, _OF_POETRY)
        for requirement in pattern.finditer(handwritten(root / name))
    ]
    return min(minors, default=ANY_PYTHON)
