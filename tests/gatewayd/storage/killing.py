"""A process that changes a database until it is killed, saying which changes it has been told are made.

Run as `python killing.py DATABASE_URL`. Each number on standard input starts a round: a fork of this process
(whose imports are done) owns the database and changes it, and writes one JSON line for its process id and one
for each acknowledged change; when it has died, this process writes `null`.
"""

import asyncio
import json
import os
import sys
from typing import Any

from gatewayd.accounts.records import ApiKey, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers


def say(value: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps(value).encode() + b"\n")


async def add_pair(database: Database, name: str) -> None:
    """Add a user and a key, both or none."""
    async with database.transaction():
        await TortoiseUsers().add(User(id=name, email=f"{name}@x", name=name, role=Role.USER), "hash")
        await TortoiseKeys().add(ApiKey(id=name, user_id=name, name="key", digest=name, prefix="sk-"))


async def own(database: Database) -> None:
    """Own the database, as soon as the server has noticed that the one before is dead."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await database.own()
            except GatewayError as error:
                if error.kind is not ErrorKind.CONFLICT:
                    raise
            await asyncio.sleep(0.01)


async def change(prefix: int) -> None:
    async with Database.open(parse(sys.argv[1])) as database:
        await own(database)
        say({"pid": os.getpid()})
        number = 0
        while True:
            number += 1
            name = f"{prefix}-{number}"
            await add_pair(database, name)
            say({"added": name})
            values = {"LEFT": [prefix, number], "RIGHT": [prefix, number]}
            await TortoiseValues().put(values, at=number, by="killing")
            say({"stored": [prefix, number]})
            if number % 3 == 0:
                await TortoiseUsers().remove(f"{prefix}-{number - 1}")
                say({"removed": f"{prefix}-{number - 1}"})


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(change(int(line)))
        os.waitpid(child, 0)
        say(None)


if __name__ == "__main__":
    main()
