"""Turn the bytes of a source file into text and back, byte for byte."""

import codecs
import io
import tokenize
from dataclasses import dataclass

__all__ = ["Decoded", "decode"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, with its line endings and byte order mark as they are, and what is needed to write it again."""

    text: str
    encoding: str

    def encode(self, text: str) -> bytes:
        """The bytes of the file with `text` in it."""
        return text.encode(self.encoding)


def decode(data: bytes, path: str = "") -> Decoded:
    """Read `data` as Python would: by its byte order mark, its coding line, or as UTF-8; a notebook is always UTF-8.

    A byte order mark stays in the text as its first character: offsets into the text are offsets into the file. Raises
    `SyntaxError` for an unknown coding and `UnicodeDecodeError` for bytes that are not in it.
    """
    if data.startswith(codecs.BOM_UTF8) or path.endswith(".ipynb"):
        return Decoded(data.decode("utf-8"), "utf-8")
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return Decoded(data.decode(encoding), encoding)
