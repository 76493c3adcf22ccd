"""All facts, linked: what names mean, what classes have, what calls give, and what becomes of awaitables."""

from troth.analysis.semantics.program import Program

__all__ = ["Program"]
