"""Runs carried out by the workers of a Temporal server; their record is kept in a store of ours."""
