"""Decide who may do what: keys, scopes, owners and how much at once."""
