"""Read and write the rows of each kind of record, in SQL that every store understands."""
