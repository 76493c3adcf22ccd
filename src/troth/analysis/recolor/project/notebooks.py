"""Look at the code of a notebook as Python that can be changed, so that a cell is edited byte for byte."""

import json

from troth.analysis.recolor.project.view import SourceView
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.notebook_text import notebook_text

__all__ = ["notebook_view"]


def notebook_view(path: str, raw: str) -> SourceView | None:
    """The notebook's code; None where it is no notebook, or has no Python."""
    data = raw.encode()
    try:
        text = read_notebook(data).source
        places = notebook_text(data)
    except ValueError:
        return None
    if places is None or not text.strip():
        return None
    return SourceView(
        path, path, "notebook", text, places.start, lambda text: json.dumps(text, ensure_ascii=False)[1:-1]
    )
