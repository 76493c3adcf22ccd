"""Agents: user code that takes a step in a conversation, in either color, and the models some of them ask."""

from troth.runtime.agents.agent import Agent
from troth.runtime.agents.budget import Budget, BudgetExceeded
from troth.runtime.agents.model import Message, Model, ModelError, Reply, Request, ToolCall, Usage
from troth.runtime.agents.tool_calling import ToolCallingAgent

__all__ = [
    "Agent",
    "Budget",
    "BudgetExceeded",
    "Message",
    "Model",
    "ModelError",
    "Reply",
    "Request",
    "ToolCall",
    "ToolCallingAgent",
    "Usage",
]
