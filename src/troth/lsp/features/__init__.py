"""What an editor can ask for: hover, code actions, lenses, inlay hints and the call hierarchy."""
