"""What is read of the rules without importing them is what they are."""

from troth.analysis.report.rulebook import rule_pages
from troth.analysis.rules import all_rules
from troth.analysis.rules.catalog import catalog, documentation_of


def test_the_catalog_has_every_rule_as_it_is() -> None:
    """Codes, names, whether they are on by default, their pages: from the text of their files alone."""
    read = [(one.code, one.name, one.is_default, documentation_of(one)) for one in catalog()]
    assert read == [(one.code, one.name, one.is_default, one.documentation) for one in all_rules()]


def test_a_page_without_examples_is_the_same_page() -> None:
    """Only whoever shows the examples has the rules imported."""
    whole, short = rule_pages(), rule_pages(with_examples=False)
    assert list(whole) == list(short)
    assert all(short[code] == page._replace(examples=short[code].examples) for code, page in whole.items())
    assert all(whole[rule.code].examples for rule in all_rules())
