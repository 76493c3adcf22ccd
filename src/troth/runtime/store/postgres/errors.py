"""What only a store in PostgreSQL has to tell."""

from troth.runtime.store.errors import StoreError

__all__ = ["UnknownOutcomeError"]


class UnknownOutcomeError(StoreError):
    """The connection was lost in COMMIT, and the database could not be asked whether it was kept.

    `where` is the store, `number` the transaction as the database counts them.
    """

    def __init__(self, where: str, number: str) -> None:
        self.where = where
        self.number = number
        super().__init__(
            f"The connection to the store {where} was lost while a commit was made, and the database cannot be asked "
            f"now whether it was kept (transaction {number}).\n"
            "Look at what is recorded before doing the same again; runs go on from what is recorded in any case."
        )

    def __reduce__(self) -> tuple[type["UnknownOutcomeError"], tuple[str, str]]:
        return UnknownOutcomeError, (self.where, self.number)
