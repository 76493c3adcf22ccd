"""Wrong color handed over: a function, a test or a mock of one color where the other is called for."""
