"""Helpers for tests: your own, and Troth's.

`failpoints` stops a program at a commit of your choice, `crash` runs one that is killed there, `engine_conformance`
holds what every engine has to do. Nothing here needs pytest.
"""
