"""Conversations: an ordered log, and one runner at a time."""

from troth.runtime.conversations.conversation import Conversation, Stopping
from troth.runtime.conversations.entries import Beginning
from troth.runtime.conversations.errors import (
    AgentExitError,
    AlreadyRunning,
    ConversationClosed,
    StepLimitReached,
    TooManyRuns,
)
from troth.runtime.conversations.log import Status
from troth.runtime.conversations.registry import Conversations
from troth.runtime.conversations.state_machine import End

__all__ = [
    "AgentExitError",
    "AlreadyRunning",
    "Beginning",
    "Conversation",
    "ConversationClosed",
    "Conversations",
    "End",
    "Status",
    "StepLimitReached",
    "Stopping",
    "TooManyRuns",
]
