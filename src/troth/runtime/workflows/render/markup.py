"""Build HTML out of values: whatever is not markup of ours is shown as text.

Names, messages, inputs and outputs come from agents, users and tools, so all of it is hostile. `tag` escapes every text
that it is given; only what `tag` and `raw` made is taken as it is. Characters that turn the direction of a text around,
or that a screen does not show, are written as escapes.
"""

import json
import re
from collections.abc import Iterable
from html import escape

__all__ = ["Html", "cut", "join", "raw", "shown_json", "tag", "text_box", "visible"]

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_SHORT, _FEW_LINES = 80, 2  # what is shown without scrolling on any screen: letters, and breaks of lines
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Markup that was made here, not text that came from elsewhere."""

    __slots__ = ()


def raw(markup: str) -> Html:
    """Take a text as markup. Only for what this program wrote itself."""
    return Html(markup)


def visible(text: str) -> str:
    """`text` with characters that hide or turn others around as escapes; line breaks and tabs stay."""
    return _INVISIBLE.sub(_escaped, text)


def _escaped(letter: "re.Match[str]") -> str:
    number = ord(letter[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def cut(text: str, most: int) -> str:
    """The beginning of a long text, and how long it is."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def shown_json(thing: object, most: int = 4000) -> str:
    """A value as people read JSON; the beginning of it where it is long."""
    text = json.dumps(thing, ensure_ascii=False, indent=2, default=str)
    return cut(text, most)


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. `class_` stands for `class`, `data_x` for `data-x`; None and False leave an attribute out."""
    parts = [f"<{name}"]
    for key, setting in attributes.items():
        if setting is None or setting is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        parts.append(f" {word}" if setting is True else f' {word}="{escape(visible(str(setting)))}"')
    parts.append(">")
    if name in _VOID:
        return Html("".join(parts))
    _add(parts, children)
    parts.append(f"</{name}>")
    return Html("".join(parts))


def text_box(text: str, most: int, css: str = "message") -> Html:
    """A text as it stands, in a box that is scrolled where the text is long: by keyboard, too."""
    can_scroll = len(text) > _SHORT or text.count("\n") >= _FEW_LINES
    return tag("pre", cut(text, most), class_=css, tabindex="0" if can_scroll else None)


def join(*children: object) -> Html:
    """Several pieces, one after the other."""
    parts: list[str] = []
    _add(parts, children)
    return Html("".join(parts))


def _add(parts: list[str], children: Iterable[object]) -> None:
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(visible(child), quote=False))
        elif isinstance(child, Iterable):
            _add(parts, child)
        else:
            parts.append(escape(str(child), quote=False))
