"""What speaks for a call giving an awaitable, one witness per module; `evidence/judge.py` asks them in its order."""
