"""The state behind the answers: open texts, one session for each folder, and what was published of it."""
