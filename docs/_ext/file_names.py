"""Show the name of a file over the block that holds it: `<!-- file: shop.py -->` stands for a caption."""

import re

__all__ = ["setup", "with_captions"]

_NAMED = re.compile(r"<!-- file: (?P<name>[^ ]+)[^>]*-->\n```(?P<language>\w+)\n")


def with_captions(text: str) -> str:
    """The page with a caption wherever a block says which file it is."""
    return _NAMED.sub(r"```{code-block} \g<language>\n:caption: \g<name>\n\n", text)


def _read(_app: object, _name: str, source: list[str]) -> None:
    source[0] = with_captions(source[0])


def setup(app: object) -> dict[str, bool]:
    """Let Sphinx ask for it, page by page."""
    app.connect("source-read", _read)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
