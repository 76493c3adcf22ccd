"""Measure who detects the mutants: checkers and test suites."""
