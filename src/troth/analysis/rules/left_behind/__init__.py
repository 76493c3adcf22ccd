"""Calls that a change of color left behind."""
