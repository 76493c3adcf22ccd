"""Agents at work: decisions as generators, an engine that performs them, a store that remembers."""
