"""What a tag has to agree with before anything is published."""

import pytest

from tools.release import complaints

PACKAGE = '"""Troth."""\n\n__version__ = "0.2.0"\n'
CHANGELOG = "# What is new\n\n## Unreleased\n\n## 0.2.0\n\n- Something.\n\n## 0.1.0\n\n- The first.\n"


@pytest.mark.parametrize(
    ("tag", "package", "changelog", "says"),
    [
        pytest.param("v0.2.0", PACKAGE, CHANGELOG, [], id="all agree"),
        pytest.param("v0.3.0", PACKAGE, CHANGELOG, ["'v0.3.0'", "`## 0.3.0`"], id="another version"),
        pytest.param("0.2.0", PACKAGE, CHANGELOG, ["'0.2.0'"], id="no `v`"),
        pytest.param("v0.2.0", PACKAGE, "## 0.2.0\n\n## 0.1.0\n\n- x\n", ["nothing under"], id="no news"),
        pytest.param("v0.2.0", PACKAGE, "## 0.2.01\n\n- x\n", ["nothing under"], id="a longer number"),
        pytest.param("v0.2.0", "", CHANGELOG, ["no version"], id="a package without a version"),
    ],
)
def test_a_tag_that_is_a_release(tag, package, changelog, says):
    """Each disagreement is named."""
    found = complaints(tag, package, changelog)
    assert len(found) == len(says)
    assert all(part in complaint for part, complaint in zip(says, found, strict=True))
