"""The project that mutants are planted in: its files, syntax and shapes."""
