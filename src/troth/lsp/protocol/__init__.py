"""What the protocol asks for, written as its types: positions, diagnostics, edits, the client and its settings."""
