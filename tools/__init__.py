"""Tools for those who develop Troth; nothing here is part of the package."""
