"""The language server: what `troth check` finds, shown, explained and repaired while somebody types."""
