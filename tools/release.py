"""Say whether a tag, the version of the package and the changelog agree: `python -m tools.release v0.1.0`."""

import re
import sys
from pathlib import Path

__all__ = ["complaints"]

ROOT = Path(__file__).resolve().parents[1]


def complaints(tag: str, package: str, changelog: str) -> list[str]:
    """What keeps this tag from being a release. `package` is the text of `troth/__init__.py`."""
    version = re.search(r'^__version__ = "([^"]+)"$', package, re.MULTILINE)
    found = []
    if version is None or tag != f"v{version[1]}":
        found.append(f"the tag is {tag!r}, and the package says {version[1] if version else 'no version'}")
    section = re.search(
        rf"^## {re.escape(tag.removeprefix('v'))}\b.*?$(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None or not section[1].strip():
        found.append(f"CHANGELOG.md has nothing under `## {tag.removeprefix('v')}`")
    return found


def main() -> int:
    """Look at this repository."""
    [tag] = sys.argv[1:]
    package = (ROOT / "src" / "troth" / "__init__.py").read_text(encoding="utf-8")
    found = complaints(tag, package, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    for complaint in found:
        print(f"Not a release: {complaint}.", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
