"""Hidden shims: async in name, a thread in truth, and whoever is taken in by it."""
