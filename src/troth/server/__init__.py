"""Runs, conversations, sessions and promises over HTTP."""
