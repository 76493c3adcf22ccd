"""The names of witnesses and doubts that are switched off, for `python -m bench.check.worth`."""

__all__ = ["OFF"]

OFF: set[str] = set()
