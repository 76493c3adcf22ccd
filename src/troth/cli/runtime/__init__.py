"""The commands about what runs: workflows, runs, workers, sessions, conversations, jobs and the outbox."""
