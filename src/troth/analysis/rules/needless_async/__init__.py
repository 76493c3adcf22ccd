"""Needless async: functions that promise to wait and never do."""
