"""Troth keeps every promise between sync and async code, or refuses it out loud.

Importing this package costs next to nothing: each part is imported where it is used
(`from troth import bridge`, `from troth import guard`), and the command line imports one command at a time.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
