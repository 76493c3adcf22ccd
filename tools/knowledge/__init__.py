"""Writes the tables of `troth.analysis.knowledge` from the packages themselves: `python -m tools.knowledge build`."""
