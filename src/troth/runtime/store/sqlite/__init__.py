"""Keep everything in one SQLite file."""
