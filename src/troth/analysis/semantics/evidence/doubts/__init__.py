"""What speaks for silence about a call, one doubt per module; `evidence/judge.py` asks them about each testimony."""
