"""Judge what a member of a session may do: rings, limits, allowlists, policies and consent."""
