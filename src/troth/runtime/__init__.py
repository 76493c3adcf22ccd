"""Agents at work: workflows, sagas and conversations, executed durably."""
