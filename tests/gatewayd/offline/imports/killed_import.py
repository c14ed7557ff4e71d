"""`python -m tests.gatewayd.offline.imports.killed_import STATE DATABASE UPLOADS CALLS`: die in the middle.

The process kills itself before the given number of calls that store something.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from gatewayd.offline.orders import IMPORT, ORDERS, OfflineOrder
from gatewayd.offline.place import read_gateway
from gatewayd.storage import chat_slices
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.plugins import TortoisePlugins, TortoiseUserValves
from gatewayd.storage.providers import TortoiseProviders
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.tool_servers import TortoiseToolServers
from gatewayd.storage.users import TortoiseUsers

METHODS: list[tuple[Any, str]] = [
    (TortoiseUsers, "add"),
    (TortoiseGroups, "add"),
    (TortoiseGroups, "add_members"),
    (TortoiseKeys, "add"),
    (TortoiseUserValves, "put"),
    (TortoiseCollections, "add"),
    (TortoiseCollections, "add_directory"),
    (TortoiseCollections, "link"),
    (TortoiseFiles, "add"),
    (TortoiseJobs, "put"),
    (TortoiseFolders, "add"),
    (chat_slices._Addition, "_write"),
    (TortoiseChats, "share"),
    (TortoisePlugins, "put"),
    (TortoiseModels, "put"),
    (TortoiseProviders, "save"),
    (TortoiseToolServers, "put"),
    (TortoiseValues, "put"),
]


class CountedCalls:
    """Counts the calls, and kills the process before one of them."""

    def __init__(self, left: int) -> None:
        self._left = left

    def wrap(self, owner: Any, name: str) -> None:
        """Count the calls of a method."""
        real = getattr(owner, name)

        async def counted(*arguments: Any, **options: Any) -> Any:
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
            return await real(*arguments, **options)

        setattr(owner, name, counted)


def main(state: str, database: str, uploads: str, calls: str) -> None:
    """Run one import."""
    counted = CountedCalls(int(calls))
    for owner, name in METHODS:
        counted.wrap(owner, name)
    chat_slices.MAX_SLICE_ROWS = 2  # type: ignore[misc]
    gateway = read_gateway(None, None, {"DATA_DIR": state, "DATABASE_URL": f"sqlite:///{state}/gatewayd.db"})
    order = OfflineOrder(verb=IMPORT, database=database, uploads=Path(uploads))
    with order.opened(gateway.place) as given:
        ORDERS[IMPORT](gateway, order, given, lambda _: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
