"""Remember answers between runs, with what each was read from, and find those that an edit makes stale."""
