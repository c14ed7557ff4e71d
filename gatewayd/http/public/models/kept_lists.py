"""Lists of models that were sent, as bytes for each caller, until a model or a right changes."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from gatewayd.accounts.records import Actor

MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes of all lists together; those that were used least lately are dropped."""

ENTRY_BYTES: Final = 1024
"""What an entry takes beside its list."""

Credential = tuple[str, str | None, str | None]


class KeptLists:
    """The list of each credential, with the actor that it was made for, all of one state of the catalogue.

    A changed account is another actor, and a changed model, record or grant another state.
    """

    def __init__(self, limit: int = MAX_KEPT_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._state: object = None
        self._lists: OrderedDict[Credential, tuple[Actor, Sequence[bytes]]] = OrderedDict()

    def keep(self, actor: Actor, state: object, parts: Sequence[bytes]) -> None:
        """Keep the list of a caller, encoded in parts; drop its earlier list and those of other states."""
        if state is not self._state:
            self._lists.clear()
            self._state, self._size = state, 0
        name = _credential(actor)
        known = self._lists.pop(name, None)
        self._size -= 0 if known is None else _size(known[1])
        if _size(parts) > self._limit:
            return
        self._lists[name] = (actor, parts)
        self._size += _size(parts)
        while self._size > self._limit:
            _, (_, dropped) = self._lists.popitem(last=False)
            self._size -= _size(dropped)

    def find(self, actor: Actor, state: object) -> Sequence[bytes] | None:
        """Return the parts of the list of a caller, None if there is none or anything has changed."""
        name = _credential(actor)
        known = self._lists.get(name)
        if known is None or known[0] is not actor or state is not self._state:
            return None
        self._lists.move_to_end(name)
        return known[1]


def _size(parts: Sequence[bytes]) -> int:
    return ENTRY_BYTES + sum(map(len, parts))


def _credential(actor: Actor) -> Credential:
    return actor.user_id, actor.key_id, actor.jti
