"""Read facts from the syntax trees of `ast`."""
