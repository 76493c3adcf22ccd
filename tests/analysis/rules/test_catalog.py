"""What is read of the rules without importing them is what they are."""

import ast
from pathlib import Path

from troth.analysis.report.rulebook import rule_pages
from troth.analysis.rules import all_rules
from troth.analysis.rules.catalog import catalog, documentation_of


def test_the_catalog_has_every_rule_as_it_is() -> None:
    """Codes, names and whether they are on by default: from the text of their files alone."""
    assert [one[:3] for one in catalog()] == [(one.code, one.name, one.is_default) for one in all_rules()]


def test_the_page_of_a_rule_is_the_docstring_of_its_module() -> None:
    """Also where the module is compiled, which has none."""
    for one in catalog():
        assert documentation_of(one) == ast.get_docstring(ast.parse(Path(one.file).read_bytes()), clean=False)


def test_a_page_without_examples_is_the_same_page() -> None:
    """Only whoever shows the examples has the rules imported."""
    whole, short = rule_pages(), rule_pages(with_examples=False)
    assert list(whole) == list(short)
    assert all(short[code] == page._replace(examples=short[code].examples) for code, page in whole.items())
    assert all(whole[rule.code].examples for rule in all_rules())
