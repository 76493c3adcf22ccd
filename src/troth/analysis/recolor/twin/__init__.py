"""One source in two colors: the sync twin of an async class, written from its text and kept beside it."""
