"""Agents at work: decisions that are executed durably, and the store that remembers them.

Everything here is a generator that decides and never waits; `troth.runtime.engine` performs what it asks for, and
`troth.runtime.store` keeps the answers. Importing this package imports neither: take what you use.
"""
