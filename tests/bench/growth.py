"""A large state, put straight into the tables of a stopped gateway: what a large company has after years."""

import asyncio
import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gatewayd.storage.engine.location import sqlite
from tests.bench.population import AT, Population, populate

PARTS: Final = 10
"""Messages of a chat."""


@dataclass(frozen=True)
class Growth:
    """How much there is: each user has a key, and the chats belong to the users in turn."""

    users: int = 100_000
    chats: int = 100_000
    models: int = 2_000
    plugins: int = 400


def grow(state: Path, size: Growth) -> None:
    """Fill the database of a stopped gateway."""
    file = state / "gatewayd.db"
    people = Population(users=size.users, groups=size.users // 100 + 1, largest=size.users // 10)
    asyncio.run(populate(sqlite(file), people))
    with closing(sqlite3.connect(file)) as database, database:
        users = [row[0] for row in database.execute("SELECT id FROM users")]
        _insert(database, "api_keys", _keys(users))
        _insert(database, "chats", _chats(users, size.chats))
        _insert(database, "chat_messages", _messages(size.chats))
        _insert(database, "models", _models(users[0], size.models))
        _insert(database, "access_grants", _grants(users, size))
        _insert(database, "plugins", _plugins(users[0], size.plugins))
    with closing(sqlite3.connect(file)) as database:
        database.execute("ANALYZE")


def _insert(database: sqlite3.Connection, table: str, rows: Iterator[dict[str, Any]]) -> None:
    first = next(rows)
    places = ", ".join(f":{name}" for name in first)
    statement = f"INSERT INTO {table} ({', '.join(first)}) VALUES ({places})"
    database.execute(statement, first)
    database.executemany(statement, rows)


def _keys(users: Sequence[str]) -> Iterator[dict[str, Any]]:
    for number, user in enumerate(users):
        digest = hashlib.sha256(f"sk-{number}".encode()).hexdigest()
        yield {
            "id": f"grown-{number}",
            "name": f"grown {number}",
            "name_key": f"grown {number}",
            "digest": digest,
            "prefix": "sk-grown",
            "created_at": AT,
            "user_id": user,
        }


def _chats(users: Sequence[str], count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": f"chat-{number}",
            "title": f"Chat {number}",
            "title_key": f"chat {number}",
            "head": "{}",
            "current_id": f"m{PARTS - 1}",
            "archived": 0,
            "pinned": 0,
            "meta": "{}",
            "updated_at": AT + number,
            "created_at": AT + number,
            "user_id": users[number % len(users)],
        }


def _messages(chats: int) -> Iterator[dict[str, Any]]:
    text = "The heron stands in shallow water and waits for fish, as it has done all day long. "
    for chat in range(chats):
        for place in range(PARTS):
            content = f"{chat}.{place} {text}"
            yield {
                "id": f"m{place}",
                "parent_id": f"m{place - 1}" if place else None,
                "role": ("user", "assistant")[place % 2],
                "content": content,
                "content_key": content.lower(),
                "done": 1,
                "state": "",
                "attributes": "{}",
                "timestamp": AT + place,
                "chat_id": f"chat-{chat}",
            }


def _models(user: str, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": f"grown-{number}",
            "user_id": user,
            "name": f"Grown {number}",
            "base_model_id": "m-fast",
            "params": '{"temperature": 0.5}',
            "meta": "{}",
            "is_active": 1,
            "updated_at": AT,
            "created_at": AT,
        }


def _grants(users: Sequence[str], size: Growth) -> Iterator[dict[str, Any]]:
    """Yield a grant of each user: twice as many as there are models on these, the others on collections."""
    for number, user in enumerate(users):
        kind = "model" if number < 2 * size.models else "knowledge"
        yield {
            "resource_type": kind,
            "resource_id": f"grown-{number % size.models}",
            "principal_type": "user",
            "principal_id": user,
            "permission": "read",
        }


def _plugins(user: str, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "family": "function",
            "id": f"grown_{number}",
            "kind": "filter",
            "user_id": user,
            "name": f"Grown {number}",
            "content": "class Filter:\n    def inlet(self, body):\n        return body\n",
            "description": "",
            "manifest": "{}",
            "meta": "{}",
            "specs": "[]",
            "valves": "{}",
            "is_active": 0,
            "is_global": 0,
            "origin": "database",
            "missing": "[]",
            "updated_at": AT,
            "created_at": AT,
        }
