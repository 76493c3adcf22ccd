"""Every rule's message has its four parts and its second place, on the rule's own examples."""

import pytest

from troth.analysis.rules import all_rules

CASES = [
    pytest.param(rule, case, id=f"{rule.code} {case.name}")
    for rule in all_rules()
    for case in [case for case in rule.cases if case.bad is not None][:2]
]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_a_finding_says_what_why_how_and_where(rule, case, project):
    """What is lost, why we know with a place, how to repair it without hiding it, and the page of the rule."""
    project.write({"app.py": case.bad} if isinstance(case.bad, str) else dict(case.bad))
    done = project.troth("check", "--select", rule.code)
    assert done.code == 1
    head, message, *rest = done.out.split("\n\n")[0].splitlines()
    assert f"  {rule.code} {rule.name}" in head
    assert message.startswith("  ")
    because = [line for line in rest if line.startswith(("  because  ", "      and  "))]
    assert because
    if rule.name != "dropped-task":  # what a task group or loop does with a task stands in no file of the project
        assert any(line.rstrip(")").rpartition(":")[2].isdigit() for line in because)
    assert any(line.startswith(("  fix  ", "  repair  ")) for line in rest)
    assert rest[-1] == f"  see  https://troth.readthedocs.io/rules/{rule.name}.html"
    assert "`_ = " not in done.out
