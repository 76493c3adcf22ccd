"""Where the text comes from: projects, files and what is in them."""

from troth.analysis.project.project import Project

__all__ = ["Project"]
