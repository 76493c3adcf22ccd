"""What a change of color reaches: overrides, callers, callbacks, and whoever requires a color."""
