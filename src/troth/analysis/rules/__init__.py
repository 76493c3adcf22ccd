"""The questions put to a program: one file per rule, found by being there."""

from troth.analysis.rules.registry import Case, Rule, all_rules, rule

__all__ = ["Case", "Rule", "all_rules", "rule"]
