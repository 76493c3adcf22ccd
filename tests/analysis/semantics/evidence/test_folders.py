"""The same words mean the same object in one program, and other ones in a repository that holds hundreds."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

AWAITED = "".join(
    f"async def use_{number}(device):\n    await device.switch_over({number})\n\n\n" for number in range(3)
)
LOST = "async def main(device):\n    device.switch_over(9)\n"


def told(files: dict[str, str]) -> list[tuple[str, int]]:
    """The file and the line of every finding."""
    texts = {path: text.encode() for path, text in files.items()}
    findings = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).findings
    return [(finding.span.path, finding.span.line) for finding in findings]


@pytest.mark.parametrize(
    ("folders", "awaiting", "is_told"),
    [
        pytest.param(3, "parts/pump/power.py", True, id="in another folder of a small project"),
        pytest.param(420, "parts/pump/power.py", False, id="in another branch of a large one"),
        pytest.param(420, "parts/lamp/power.py", True, id="in the same folder"),
        pytest.param(420, "parts/lamp/driver/power.py", True, id="below it"),
        pytest.param(420, "parts/power.py", True, id="above it"),
        pytest.param(420, "power.py", True, id="at the root"),
    ],
)
def test_those_who_await(folders, awaiting, is_told):
    """They speak for a call in another branch only where the project has few."""
    others = {f"others/part{number}/plain.py": f"x{number} = {number}\n" for number in range(folders)}
    files = {**others, awaiting: AWAITED, "parts/lamp/switch.py": LOST}
    assert told(files) == ([("parts/lamp/switch.py", 2)] if is_told else [])


COMPANY = "from acme import Client\n\n\n" + "".join(
    f"async def {word}(client: Client):\n    await client.set_{word}()\n\n\n"
    for word in ("users", "teams", "roles", "items", "rooms", "bills", "tasks", "notes")
)


@pytest.mark.parametrize(
    ("plain", "is_told"),
    [
        pytest.param("", True, id="nothing"),
        pytest.param("def mute(client: Client):\n    return client.get_mute()\n", False, id="another of its kind"),
        pytest.param(
            "".join(f"def look_{n}(client: Client):\n    return client.get_power()\n" for n in range(3)),
            False,
            id="the same, in several functions",
        ),
        pytest.param("def off(client: Client):\n    return client.switch_off()\n", True, id="one of another kind"),
    ],
)
def test_methods_that_plain_functions_call(plain, is_told):
    """A library's class with eight awaited methods has getters that are sync where sync code calls them."""
    main = "async def main(client: Client):\n    power = client.get_power()\n    print(power.level)\n"
    findings = told({"app.py": f"{COMPANY}{plain}{main}"})
    assert bool(findings) is is_told
