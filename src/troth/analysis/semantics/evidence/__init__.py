"""Weigh evidence about callees whose type is unknown."""
