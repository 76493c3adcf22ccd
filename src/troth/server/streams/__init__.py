"""Send events to readers as they come."""
