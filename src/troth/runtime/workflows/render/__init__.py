"""Pictures of a run, all from one `RunReport`: text for a terminal, Mermaid, HTML that needs nothing else."""
