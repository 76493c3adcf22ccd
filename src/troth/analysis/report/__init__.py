"""What analysis found, put into words: one module per format, imported when that format is asked for."""
