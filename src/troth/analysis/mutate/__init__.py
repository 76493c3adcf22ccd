"""Planting mismatches in a copy of a project, and seeing who notices."""
