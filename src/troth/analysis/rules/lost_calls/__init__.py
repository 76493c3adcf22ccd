"""Calls that never happen."""
