"""Sagas: steps that all happen, or are undone in reverse. Never half, never silently."""
