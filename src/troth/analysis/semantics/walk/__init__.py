"""Walk functions and follow every awaitable to its end."""
