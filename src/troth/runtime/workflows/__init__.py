"""Workflows: read strictly from YAML or built in Python, executed by the engine, finished or undone."""
