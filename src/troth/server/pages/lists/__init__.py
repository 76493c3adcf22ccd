"""What the lists of all pages are made of: the questions to the store, and rows for what it answers."""
