"""Helpers for the tests of those who use Troth."""
