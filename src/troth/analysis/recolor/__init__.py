"""Changing the color of a function or of a class's whole surface, with every call site."""
