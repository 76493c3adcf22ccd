"""Infer the value of an expression, or answer that it is unknown."""
