"""Answer the questions that rules ask about the whole program: call graph, callbacks, overrides, threads."""
