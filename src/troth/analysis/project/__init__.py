"""What a project is: its root, files, import roots, environment and pinned versions."""
