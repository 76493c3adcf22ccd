"""Take a project through all stages of analysis: files, facts, program, walk, rules, findings."""

from troth.analysis.pipeline.analyse import analyse
from troth.analysis.result import Analysis

__all__ = ["Analysis", "analyse"]
