"""Join workflows with the Python they call: the builder, loading, function lookup, and changes of code."""
