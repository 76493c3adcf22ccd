"""Collect garbage while nobody types, instead of in the middle of an answer.

The collector of Python is off while the server works: it would stop an answer for longer than the answer takes. The
program of each look is one large cycle, so somebody has to collect it. What is kept from look to look (facts, modules,
tables) is frozen, which means that it is not gone through again; everything else is gone through each time, in all
generations. A program that is alive at one collection is old at the next one, and would never be let go of otherwise.
"""

import gc
import logging

__all__ = ["Collector"]

_log = logging.getLogger("troth.lsp")
_MANY = 100_000  # objects; to go through so many takes longer than the quickest answers
_WAITING = 100_000  # new objects, some 20 MB: the garbage of about five looks at a large project
_FIRST = 2  # looks; the second one lets go of the program of the first, which has looked at everything


class Collector:
    """The collector of this process. All folders share one, as there is only one to be switched off."""

    def __init__(self) -> None:
        self._collections = 0

    @staticmethod
    def take_over() -> None:
        """Look for garbage no more but when `collect` is called."""
        gc.disable()

    @property
    def is_due(self) -> bool:
        """Whether so much has come together that it is collected even while somebody types."""
        return gc.get_count()[0] > _WAITING

    def collect(self) -> None:
        """Let go of what looks that are over have left behind."""
        freezes = self._collections < _FIRST or len(gc.get_objects()) > _MANY
        self._collections += 1
        if freezes:
            gc.unfreeze()
        gc.collect()
        if freezes:
            gc.freeze()
        if _log.isEnabledFor(logging.INFO):
            _log.info("garbage is collected: %d objects are kept", len(gc.get_objects()) + gc.get_freeze_count())
