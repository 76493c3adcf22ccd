"""Repairing what was found: fixes are chosen, applied until nothing is left to do, checked again and written as one."""
