"""Rewrite definitions, calls, mocks and tests for the other color."""
