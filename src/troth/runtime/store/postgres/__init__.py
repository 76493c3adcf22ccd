"""The store in PostgreSQL, for several machines. `open_store("postgresql://…")` opens it; extra: `postgres`.

`statements.py` has its SQL by name, `schema.py` its tables, `writer.py` how commits are made and made again, `news.py`
how workers hear of one another, `liveness.py` who counts as alive.
"""
