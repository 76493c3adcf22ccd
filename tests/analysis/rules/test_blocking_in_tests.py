"""Blocking calls in a file of tests: each callee once."""

import pytest
from tests.analysis.rules.test_cases import findings

TEXT = (
    "import time\nimport requests\n"
    "async def test_one():\n    requests.get('x')\n    time.sleep(1)\n"
    "async def test_two():\n    requests.get('y')\n    requests.post('z')\n    time.sleep(2)\n"
)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        pytest.param("tests/test_app.py", [4, 5, 8], id="a file of tests"),
        pytest.param("app.py", [4, 5, 7, 8, 9], id="any other file"),
    ],
)
def test_a_callee_is_told_once_in_a_file_of_tests(path: str, lines: list[int]) -> None:
    """A suite that talks to its server by `requests` says so in hundreds of places; one of them tells it."""
    assert sorted(f.span.line for f in findings({path: TEXT}) if f.code == "TR602") == lines
