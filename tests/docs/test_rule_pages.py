"""The pages of the rules are made from the rules."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "docs/_ext/rules.py"


def load():
    spec = importlib.util.spec_from_file_location("troth_docs_rules", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_rule_says_what_it_finds_and_why():
    """The docstring of a rule has paragraphs that begin with these words; most say how sure the fix is as well."""
    from troth.analysis.report.rulebook import rule_pages

    for page in rule_pages().values():
        missing = {"What it finds", "Why it matters"} - {heading for heading, _ in page.parts}
        assert not missing, f"{page.code} {page.name}: its docstring lacks {missing}"


def test_every_rule_has_a_page(tmp_path):
    """With what it says about itself; a page of a rule that is gone goes too; nothing is written twice."""
    from troth.analysis.report.rulebook import rule_pages

    (tmp_path / "gone.md").write_text("old")
    written = load().write_rule_pages(tmp_path)
    assert {path.stem for path in written} == {"index"} | {page.name for page in rule_pages().values()}
    assert sorted(tmp_path.iterdir()) == written
    index = (tmp_path / "index.md").read_text()
    for page in rule_pages().values():
        text = (tmp_path / f"{page.name}.md").read_text()
        assert text.startswith(f"# {page.code} {page.name}\n")
        assert all(part[1:] in text for _, part in page.parts)  # sentences begin with a capital letter
        assert f"[{page.name}]({page.name}.md)" in index
    times = {path: path.stat().st_mtime_ns for path in written}
    load().write_rule_pages(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in written} == times
