"""Runs of workflows, as the verbs of `Runtime` need them: to look at, to wait for, to follow, and to answer."""
