"""One source in two colors: the plain twin of an async class, written from its text and kept beside it."""
