"""The event loops that the bridge makes: on the caller's thread, or on a thread of their own."""
