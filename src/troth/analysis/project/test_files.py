"""Find which files are there to test others."""

__all__ = ["is_test"]


def is_test(path: str) -> bool:
    """Whether a file is there to test others."""
    *folders, name = path.split("/")
    return name.startswith(("test_", "conftest")) or name.endswith("_test.py") or bool({"tests", "test"} & {*folders})
