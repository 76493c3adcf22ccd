"""Decide whether the analysis runs as compiled code or as plain Python: the same answers, almost twice the time."""

from troth.analysis.semantics.walk import function_walk

__all__ = ["is_compiled"]


def is_compiled() -> bool:
    """Whether the modules of the program were compiled when this copy of Troth was built."""
    return not function_walk.__file__.endswith(".py")


if __name__ == "__main__":
    how = "compiled" if is_compiled() else "plain Python: the same answers, almost twice the time"
    print(f"» the analysis is {how}")
