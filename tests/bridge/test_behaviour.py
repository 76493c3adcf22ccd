"""The behaviour table: what the user sees, and what is left running, each row in a fresh process with a time limit."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STAGE = Path(__file__).parent / "rows" / "stage.py"
ROWS = json.loads(subprocess.run([sys.executable, STAGE, "--list"], check=True, capture_output=True, timeout=60).stdout)


def test_the_table_is_as_long_as_promised():
    """The facts of the bridge are shown by at least sixty rows."""
    assert len(ROWS) >= 60


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['file']}: {row['fact']}") for row in ROWS])
def test_behaviour(row, tmp_path):
    """The row's function returns what it should, stderr tells what it should, and nothing else lives on."""
    for needed in row["needs"]:
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    command = [sys.executable, "-W", "always", *row["flags"], str(STAGE), row["file"], row["name"]]
    environment = {**os.environ, "PYTHONPATH": "", "IPYTHONDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        before = ""
        for _ in range(row["signals"]):
            for line in process.stdout:
                before += line
                if line == "READY\n":
                    break
            time.sleep(0.1)  # from the line that said so to the wait it speaks of
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=row["limit"])
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"still running after {row['limit']} s\n{before}{out}\n{err}")
    found = re.search(r"^SEEN (.*) LEFT (.*)$", before + out, re.MULTILINE)
    assert found, f"the row did not get to its end (exit code {process.returncode})\n{before}{out}\n{err}"
    assert json.loads(found[1]) == row["sees"], err
    left = json.loads(found[2])
    assert row["tasks"] is None or len(left["tasks"]) == row["tasks"], left["tasks"]
    assert [name for name in left["threads"] if not any(name.startswith(known) for known in row["left"])] == []
    if row["tells"]:
        assert [part for part in row["tells"] if part not in err] == [], err
    else:
        assert err == ""
    assert process.returncode == row["code"], err
