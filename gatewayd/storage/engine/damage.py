"""Whether the database is known to be damaged: noted with its errors, until a check finds none.

What is known belongs to the open database, which is found as the stores find it: by context.
"""

from contextvars import ContextVar

from gatewayd.errors import ErrorKind, GatewayError


class DamageError(GatewayError):
    """The database says that what it has stored is not what was written."""


class DatabaseDamage:
    """What is known of the damage to a database; `sentence` is None as long as there is none."""

    def __init__(self) -> None:
        self.sentence: str | None = None

    def note(self, sentence: str) -> None:
        """Remember the first damage that was met."""
        if self.sentence is None:
            self.sentence = sentence

    def clear(self) -> None:
        """Forget it: a check has found none."""
        self.sentence = None

    def refuse(self) -> None:
        """Raise internal when damage is known."""
        if self.sentence is not None:
            raise GatewayError(ErrorKind.INTERNAL, self.sentence)


_current: ContextVar[DatabaseDamage | None] = ContextVar("damage", default=None)


def begin() -> DatabaseDamage:
    """Return what the errors of the database that this context opens are noted in."""
    damage = DatabaseDamage()
    _current.set(damage)
    return damage


def note(sentence: str) -> None:
    """Note damage to the open database; without one there is nobody to tell."""
    damage = _current.get()
    if damage is not None:
        damage.note(sentence)
