"""Read and write workflow documents: YAML, fields, expressions, paths, and every problem with its place."""
