"""The commands about code: check, fix, recolor, explain, mutate and the language server."""
