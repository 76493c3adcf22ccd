"""Rules about other libraries that cross colors, for whoever leaves them; all are off by default."""
