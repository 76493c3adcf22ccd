"""Aftermath: what is still wrong once the await is there."""
