"""The audit trail of sessions: chained under a key that is not in the store, and anchored outside of it."""
