"""Execute workflows: decisions that never wait, joins and races, limits, resuming and replaying."""
