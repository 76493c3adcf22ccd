"""Text changes: applied exactly, and written to many files as one."""
