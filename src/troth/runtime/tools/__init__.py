"""What agents can do: plain or async functions, described to the model by their own signature."""

from troth.runtime.tools.call import ToolOutcome
from troth.runtime.tools.tool import Tool, ToolArgumentsError, tool

__all__ = ["Tool", "ToolArgumentsError", "ToolOutcome", "tool"]
