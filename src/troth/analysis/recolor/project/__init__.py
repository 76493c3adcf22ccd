"""The project as a recolor reads it: files, notebooks, code in documents, call sites."""
