"""In-process notification of account changes, which invalidates cached rights."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gatewayd.transactions import after_commit


@dataclass(frozen=True, slots=True)
class AccountChange:
    """Change of the rights of a user, or of all users if `user_id` is None.

    `is_out` says that the account was removed, deactivated or made pending: its open connections must end.
    `asks_again` says that its role, its password, a session or a key changed or ended: long-lived connections
    must authenticate again. `ended` has the ids of the sessions that ended, whose requests are cancelled;
    with `is_signed_out` these are all sessions of the user. `is_removed` says that the account is gone.
    """

    user_id: str | None
    is_out: bool = False
    asks_again: bool = False
    ended: tuple[str, ...] = ()
    is_signed_out: bool = False
    is_removed: bool = False


ChangeListener = Callable[[AccountChange], None]


class AccountChangeNotifier:
    """Notifies listeners in this process of every committed change, synchronously."""

    def __init__(self) -> None:
        self._listeners: list[ChangeListener] = []

    def subscribe(self, listener: ChangeListener) -> None:
        """Call `listener` for every change from now on; it must neither block nor raise."""
        self._listeners.append(listener)

    def publish(self, change: AccountChange) -> None:
        """Notify the listeners now, or after the commit if the call is inside a transaction."""
        after_commit(partial(self._deliver, change))

    def _deliver(self, change: AccountChange) -> None:
        for listener in self._listeners:
            listener(change)
