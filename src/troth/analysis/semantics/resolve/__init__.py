"""Resolve names: imports, modules, classes, references, and what libraries define."""
