"""The embedded engine: runs driven in this process, on one store, with leases, a supervisor and two drivers."""
