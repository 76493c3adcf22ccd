"""What no signature says, by name: short lists that are verified against the real packages before they are written.

A list is text, one fact to a line, its fields separated by `|`; the first field holds one or more fully qualified
names. `{a,b}` stands for each of `a` and `b`. An indented line goes on with the one above; `#` starts a comment.
"""
