"""Where the text comes from: projects, files and what is in them."""

from troth.analysis.source.project import Project

__all__ = ["Project"]
