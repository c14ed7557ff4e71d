"""Known damage of the database: recorded from its errors, and cleared by a check that finds none.

The record belongs to the open database and is found through a context variable, like the database itself.
"""

from contextvars import ContextVar

from gatewayd.errors import ErrorKind, GatewayError


class DamageError(GatewayError):
    """The database reports that its stored data are damaged."""


class DatabaseDamage:
    """Known damage of a database; `sentence` is None without damage."""

    def __init__(self) -> None:
        self.sentence: str | None = None

    def note(self, sentence: str) -> None:
        """Record damage; only the first sentence is stored."""
        if self.sentence is None:
            self.sentence = sentence

    def clear(self) -> None:
        """Clear the record after a check without findings."""
        self.sentence = None

    def refuse(self) -> None:
        """Raise internal when damage is known."""
        if self.sentence is not None:
            raise GatewayError(ErrorKind.INTERNAL, self.sentence)


_current: ContextVar[DatabaseDamage | None] = ContextVar("damage", default=None)


def begin() -> DatabaseDamage:
    """Return a new record for the database that this context opens."""
    damage = DatabaseDamage()
    _current.set(damage)
    return damage


def note(sentence: str) -> None:
    """Record damage of the open database; does nothing without one."""
    damage = _current.get()
    if damage is not None:
        damage.note(sentence)
