"""Tell this process that accounts changed, so that nobody decides by an old copy."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gatewayd.transactions import after_commit


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What one user may do has changed; `user_id` None means everybody.

    `is_out` says that the account was removed, deactivated or made pending: what it has open must end.
    `asks_again` says that its role, its password, a session or a key changed or ended: what stays open for
    hours must be asked for again.
    """

    user_id: str | None
    is_out: bool = False
    asks_again: bool = False


ChangeListener = Callable[[AccountChange], None]


class AccountChangeNotifier:
    """Carries every committed change to its listeners, in process and at once."""

    def __init__(self) -> None:
        self._listeners: list[ChangeListener] = []

    def subscribe(self, listener: ChangeListener) -> None:
        """Call `listener` for every change from now on; it must neither block nor raise."""
        self._listeners.append(listener)

    def publish(self, change: AccountChange) -> None:
        """Tell the listeners: now, or when the transaction that surrounds the call has committed."""
        after_commit(partial(self._deliver, change))

    def _deliver(self, change: AccountChange) -> None:
        for listener in self._listeners:
            listener(change)
