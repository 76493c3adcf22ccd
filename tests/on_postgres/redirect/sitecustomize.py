"""Keep in PostgreSQL what a program of the tests keeps in a file: every path stands for a schema of its own.

Python imports this module at its start where its folder is on PYTHONPATH; `--store postgres` puts it there. So the
programs that tests start as processes of their own are redirected as well, and no test has to be written twice.
"""

import hashlib
import os
from pathlib import Path

VARIABLE = "TROTH_TESTS_POSTGRES"


def address_of(path):
    """The address of the schema that stands for a file. The file is made, too: tests look whether it exists."""
    file = Path(path).absolute()
    schema = f"t_{hashlib.sha256(str(file).encode()).hexdigest()[:20]}"
    return f"{os.environ[VARIABLE]}&schema={schema}"


def redirect():
    """From now on, whoever opens a file opens a schema."""
    import troth.runtime.store as package
    from troth.runtime.store import open as opening
    from troth.runtime.store.postgres.store import PostgresStore
    from troth.runtime.store.sqlite import store as sqlite

    class Redirected(PostgresStore):
        def __init__(self, path, *, clock=None, read_only=False, **_):
            opening.check_path("path", path)
            if str(path).startswith("postgresql://"):
                super().__init__(str(path), clock=clock, read_only=read_only)
                return
            super().__init__(address_of(path), clock=clock, read_only=read_only)
            Path(path).touch()
            self.path = Path(path).absolute()
            self.address = self.name = str(self.path)

    package.SqliteStore = sqlite.SqliteStore = Redirected


if VARIABLE in os.environ:
    redirect()
