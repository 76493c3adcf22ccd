"""A cache that other code of a development install has written is not believed."""

import os

import pytest

from troth.analysis.incremental.own_code import own_code


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "src" / "troth" / "analysis"
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "one.py").write_text("", encoding="utf-8")
    yield folder
    own_code.cache_clear()


def test_an_edited_rule_is_other_code(package):
    """Whether a file is changed, added or taken away."""
    (package.parents[2] / "pyproject.toml").write_text("", encoding="utf-8")
    seen = [own_code(package)]
    os.utime(package / "rules" / "one.py", ns=(1, 2**62))
    own_code.cache_clear()
    seen.append(own_code(package))
    (package / "rules" / "two.py").write_text("", encoding="utf-8")
    own_code.cache_clear()
    seen.append(own_code(package))
    assert len(set(seen)) == len(seen)


def test_an_installed_analysis_is_not_looked_at(package):
    """Its version says which code it is."""
    assert own_code(package) == ""
