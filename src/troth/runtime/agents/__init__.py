"""Agents: user code that takes a step in a conversation, in either color, and the models some of them ask."""
