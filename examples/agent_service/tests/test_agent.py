"""All green, and nothing is tested."""

import unittest

from concierge.policy import SpendingPolicy
from concierge.store import ConversationStore


class PolicyTest(unittest.TestCase):
    async def test_a_dear_flight_is_refused(self):
        self.assertFalse(await SpendingPolicy(limit=300).allows("book_flight", 420))


class StoreTest(unittest.TestCase):
    def test_a_new_conversation_is_empty(self):
        store = ConversationStore()
        self.assertTrue(store.load("c1"))
