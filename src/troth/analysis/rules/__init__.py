"""The questions put to a program: one file per rule, found by being there."""

from troth.analysis.rules.registry import Case, CheckRule, all_rules, rule

__all__ = ["Case", "CheckRule", "all_rules", "rule"]
