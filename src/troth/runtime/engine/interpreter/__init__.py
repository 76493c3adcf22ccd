"""Interpret a decision.

Send it the answers it asks for, from the record first, then from the world. Shared by every engine.
"""
