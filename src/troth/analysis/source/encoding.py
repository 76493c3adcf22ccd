"""Knows how to turn the bytes of a Python file into text and back, byte for byte."""

import codecs
import io
import tokenize
from dataclasses import dataclass

__all__ = ["Decoded", "decode"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, with its line endings as they are, and what is needed to write it again."""

    text: str
    encoding: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes of the file with `text` in it."""
        return self.mark + text.encode(self.encoding)


def decode(data: bytes) -> Decoded:
    """Read `data` as Python would: by its byte order mark, its coding line, or as UTF-8.

    Raises `SyntaxError` for an unknown coding and `UnicodeDecodeError` for bytes that are not in it.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    name = "utf-8" if mark else encoding
    return Decoded(data[len(mark) :].decode(name), name, mark)
