"""The worker threads of the bridge: how many there are, and which of them wait."""
