"""What one file says, read alone: definitions, imports, calls and how their values are used."""

from troth.analysis.facts.model import FACTS_VERSION, ClassFacts, FileFacts, FunctionFacts

__all__ = ["FACTS_VERSION", "ClassFacts", "FileFacts", "FunctionFacts"]
