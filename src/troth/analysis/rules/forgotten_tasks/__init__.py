"""Promises to nobody: work that is started and left before it is done."""
