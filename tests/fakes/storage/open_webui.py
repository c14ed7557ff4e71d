"""Databases of Open WebUI with a household of two users, as SQLite files and on PostgreSQL."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import bcrypt

from gatewayd.storage.engine.location import parse
from tests.fakes.storage.open_webui_schemas import NEW, OLD, SCHEMAS

Rows = dict[str, list[dict[str, Any]]]

PASSWORD = "ada-and-bob-share-this"
AT = 1_700_000_000
KEY = "sk-0123456789abcdef0123456789abcdef"
FILTER = '''"""
title: Shout
"""
from pydantic import BaseModel


class Filter:
    class Valves(BaseModel):
        mark: str = "!"

    def __init__(self):
        self.valves = self.Valves()

    def outlet(self, body):
        return body
'''
TOOLS = '''class Tools:
    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b
'''


def hashed(password: str = PASSWORD) -> str:
    """Return a hash as Open WebUI stores it, with the least work."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def message(message_id: str, parent_id: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message of the tree of a chat."""
    return {
        "id": message_id,
        "parentId": parent_id,
        "childrenIds": [],
        "role": role,
        "content": content,
        **more,
    }


def history(*messages: dict[str, Any], current: str | None = None) -> dict[str, Any]:
    """Return the JSON of a chat with these messages."""
    tree = {each["id"]: each for each in messages}
    return {"models": ["m"], "history": {"messages": tree, "currentId": current}, "messages": []}


def user(user_id: str, email: str, role: str = "user", **more: Any) -> dict[str, Any]:
    """Return the row of a user."""
    name = email.partition("@")[0].title()
    return {"id": user_id, "name": name, "email": email, "role": role, **times(), **more}


def auth(user_id: str, password: str | None = None, *, active: bool = True, **more: Any) -> dict[str, Any]:
    """Return the row of a user's password."""
    return {"id": user_id, "password": password or hashed(), "active": active, **more}


def times(at: int = AT) -> dict[str, int]:
    """Return the times of a row."""
    return {"created_at": at, "updated_at": at}


def household(schema: str = NEW) -> Rows:
    """Return the rows of two users with everything that is imported; `UPLOAD` has the bytes of one file."""
    tree = (
        message("m1", None, "user", "Hello?"),
        message("m2", "m1", "assistant", "First", model="m", done=True),
        message("m3", "m1", "assistant", "Second", model="m", done=True, sources=[{"source": {"name": "a"}}]),
    )
    chat = history(*tree, current="m3")
    common: Rows = {
        "user": [user("u-ada", "Ada@Example.org", "admin"), user("u-bob", "bob@example.org")],
        "auth": [auth("u-ada"), auth("u-bob")],
        "group": [
            {
                "id": "g-1",
                "user_id": "u-ada",
                "name": "Writers",
                "permissions": {"features": {"api_keys": True, "x": True}},
            }
        ],
        "folder": [{"id": "f-1", "user_id": "u-bob", "name": "Work", "is_expanded": True}],
        "tag": [{"id": "my_tag", "name": "My Tag", "user_id": "u-bob"}],
        "chat": [
            {
                "id": "c-1",
                "user_id": "u-bob",
                "title": "Trees",
                "chat": chat,
                "pinned": True,
                "archived": False,
                "meta": {"tags": ["my_tag"]},
                "folder_id": "f-1",
                "share_id": "s-1",
                **times(),
            },
        ],
        "file": [
            {
                "id": "file-1",
                "user_id": "u-ada",
                "filename": "rules.txt",
                "path": "/data/uploads/file-1_rules.txt",
                "meta": {"name": "rules.txt", "content_type": "text/plain", "data": {"a": 1}},
                "hash": "0a",
                **times(),
            },
        ],
        "knowledge": [
            {"id": "k-1", "user_id": "u-ada", "name": "Handbook", "description": "Rules", **times()}
        ],
        "function": [
            {
                "id": "shout",
                "user_id": "u-ada",
                "name": "Shout",
                "type": "filter",
                "content": FILTER,
                "meta": {"description": "shouts"},
                "valves": {"mark": "?"},
                "is_active": True,
                "is_global": True,
                **times(),
            },
        ],
        "tool": [
            {
                "id": "adder",
                "user_id": "u-ada",
                "name": "Adder",
                "content": TOOLS,
                "specs": [{"name": "add"}],
                "meta": {"description": "adds"},
                "valves": {},
                **times(),
            },
        ],
        "model": [
            {
                "id": "helper",
                "user_id": "u-ada",
                "base_model_id": "m",
                "name": "Helper",
                "params": {"system": "Help."},
                "meta": {"description": "helps"},
                "is_active": True,
                **times(),
            },
        ],
        "prompt": [{"command": "/sum", "user_id": "u-bob", "title": "Sum", "content": "Sum up"}],
    }
    return _older(common) if schema == OLD else _newer(common, chat)


UPLOAD = ("file-1_rules.txt", b"Dogs may not enter the library on Sundays. Cats may.")


def _older(rows: Rows) -> Rows:
    everybody: dict[str, Any] = {"read": {"group_ids": ["g-1"], "user_ids": []}, "write": {}}
    rows["user"][1] |= {
        "api_key": KEY,
        "settings": {"functions": {"valves": {"shout": {"loud": True}}}, "ui": {}},
    }
    rows["group"][0]["user_ids"] = ["u-bob"]
    rows["knowledge"][0] |= {"data": {"file_ids": ["file-1"]}, "access_control": everybody}
    rows["tool"][0]["access_control"] = None
    rows["chat"].append({**rows["chat"][0], "id": "s-1", "user_id": "shared-c-1", "share_id": None})
    rows["config"] = [
        {"id": 1, "data": {"ui": {"enable_signup": True}}},
        {
            "id": 2,
            "data": {
                "ui": {"enable_signup": False, "default_group_id": "g-1"},
                "openai": {
                    "api_base_urls": ["http://127.0.0.1:9/v1"],
                    "api_keys": ["sk-up"],
                    "api_configs": {"0": {"enable": True}},
                },
                "user": {"permissions": {"chat": {"delete": False}}},
                "audio": {"tts": {"voice": "alloy"}},
            },
        },
    ]
    return rows


def _newer(rows: Rows, chat: dict[str, Any]) -> Rows:
    rows["user"][1] |= {
        "username": "bob",
        "settings": {"functions": {"valves": {"shout": {"loud": True}}}, "ui": {}},
    }
    rows["api_key"] = [{"id": "key-1", "user_id": "u-bob", "key": KEY, **times()}]
    rows["group_member"] = [{"id": "gm-1", "group_id": "g-1", "user_id": "u-bob"}]
    rows["access_grant"] = [grant("knowledge", "k-1", "group", "g-1"), grant("tool", "adder", "user", "*")]
    rows["knowledge_directory"] = [
        {"id": "d-1", "knowledge_id": "k-1", "name": "Animals", "user_id": "u-ada"}
    ]
    rows["knowledge_file"] = [
        {"id": "kf-1", "knowledge_id": "k-1", "file_id": "file-1", "user_id": "u-ada", "directory_id": "d-1"}
    ]
    rows["shared_chat"] = [
        {"id": "s-1", "chat_id": "c-1", "user_id": "u-bob", "title": "Trees", "chat": chat, **times()}
    ]
    rows["chat_message"] = [
        {
            "id": "c-1-m4",
            "chat_id": "c-1",
            "role": "user",
            "parent_id": "m3",
            "content": "In a row alone",
            **times(),
        }
    ]
    values = {
        "ui.enable_signup": False,
        "ui.default_group_id": "g-1",
        "openai.api_base_urls": ["http://127.0.0.1:9/v1"],
        "openai.api_keys": ["sk-up"],
        "openai.api_configs": {"0": {"enable": True, "prefix_id": None}},
        "user.permissions": {"chat": {"delete": False}},
        "audio.tts.voice": "alloy",
        "audio.tts.engine": "",
        "tool_server.connections": [
            {
                "url": "http://127.0.0.1:9/tools",
                "path": "openapi.json",
                "info": {"name": "Files"},
                "config": {"enable": True},
                "auth_type": "bearer",
                "key": "k",
            }
        ],
    }
    rows["config"] = [{"key": key, "value": value} for key, value in values.items()]
    return rows


def grant(
    kind: str, resource: str, principal_type: str, principal: str, permission: str = "read"
) -> dict[str, Any]:
    """Return a row of an access list."""
    return {
        "id": f"{kind}-{resource}-{principal}",
        "resource_type": kind,
        "resource_id": resource,
        "principal_type": principal_type,
        "principal_id": principal,
        "permission": permission,
        "created_at": AT,
    }


def make_file(path: Path, rows: Rows, schema: str = NEW) -> Path:
    """Write a database as a SQLite file, which keeps a write-ahead log, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(SCHEMAS[schema])
        for table, row in _each(rows):
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join("?" * len(row))
            connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', _values(row))
    return path


async def make_server(url: str, rows: Rows, schema: str = NEW) -> str:
    """Write a database to an empty PostgreSQL database, and return its address."""
    credentials = parse(url).credentials
    options = {name: credentials[name] for name in ("host", "port", "user", "password", "database")}
    connection = await asyncpg.connect(**options)
    try:
        await connection.execute(SCHEMAS[schema])
        for table, row in _each(rows):
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join(f"${number}" for number in range(1, len(row) + 1))
            await connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', *_values(row))
    finally:
        await connection.close()
    return url


def make_uploads(folder: Path) -> Path:
    """Write the uploads of the household, and return their directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / UPLOAD[0]).write_bytes(UPLOAD[1])
    return folder


def _each(rows: Rows) -> Sequence[tuple[str, dict[str, Any]]]:
    return [(table, row) for table, found in rows.items() for row in found]


def _values(row: dict[str, Any]) -> list[Any]:
    """Return the values as the columns keep them: JSON as text, also that of a text in a message's row."""
    is_message = "chat_id" in row and "role" in row
    return [
        json.dumps(value)
        if isinstance(value, dict | list) or (name == "value" or (is_message and name == "content"))
        else value
        for name, value in row.items()
    ]
