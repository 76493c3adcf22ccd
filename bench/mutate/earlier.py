"""What was measured before `troth mutate` existed, with other versions of the same trees and a script of its own.

Percent of dropped awaits with a new finding on the line and in the function, one per function, stratified, seed 7,
dependencies not installed. The versions of the tools are those that `requirements/bench.lock` pins.
"""

BY_TREE = {
    "aiohttp": {"ruff": (0, 0), "mypy": (58, 78), "pyright": (57, 79), "ty": (56, 78), "pyrefly": (52, 74)},
    "discordpy": {"ruff": (0, 0), "mypy": (52, 78), "pyright": (54, 80), "ty": (39, 66), "pyrefly": (50, 77)},
    "langgraph": {"ruff": (0, 0), "mypy": (47, 52), "pyright": (41, 48), "ty": (41, 48), "pyrefly": (47, 52)},
    "prefect": {"ruff": (0, 0), "mypy": (52, 60), "ty": (53, 62), "pyrefly": (48, 56)},
}

# On the line, over all trees that each tool ran on (seven to nine of them).
BY_SHAPE = {
    "mypy": {"bare": 78, "assigned": 13, "return": 52, "condition": 90, "larger": 46},
    "pyright": {"bare": 80, "assigned": 10, "return": 60, "condition": 97, "larger": 39},
    "ty": {"bare": 66, "assigned": 10, "return": 48, "condition": 73, "larger": 30},
    "pyrefly": {"bare": 73, "assigned": 9, "return": 41, "condition": 75, "larger": 33},
}
