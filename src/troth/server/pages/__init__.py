"""The pages of a server: what runs, what waits, what failed and why, and the buttons to act on it.

Each page is complete HTML, made from the same values as the text of the commands. A script keeps it fresh.
"""
