"""Commit to PostgreSQL: the connection that commits, and the short way of ordinary steps."""
