"""The record of a run as values: reports, events, lineage and differences."""
