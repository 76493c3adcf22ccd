"""The OpenAPI document and what the server answers agree, whatever is asked; `schemathesis` does the asking."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.service import Served, fill


@pytest.mark.soak
def test_every_answer_is_as_declared(tmp_path):
    """No 5xx, no status, type or body that the document does not have."""
    pytest.importorskip("schemathesis")
    server = Served(fill(tmp_path), "app:governed")
    (tmp_path / "go").touch()
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    try:
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                "run",
                f"{server.url}/v1/openapi.json",
                "--max-examples",
                "25",
                "--checks",
                checks,
                "--phases",
                "coverage,fuzzing",
                "--exclude-path-regex",
                ".*/events",
                "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        server.close()
    assert done.returncode == 0, done.stdout[-4000:]
