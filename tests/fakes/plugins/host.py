"""A host for plugins with a little of everything, in memory; it notes what it is asked."""

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.runtime.context import CallScope

ADA = {
    "id": "ada",
    "name": "Ada",
    "email": "ada@example.org",
    "role": "admin",
    "settings": {"ui": {"theme": "dark"}},
    "created_at": 1,
}
BOB = {"id": "bob", "name": "Bob", "email": "bob@example.org", "role": "user", "created_at": 2}

CHAT = {
    "id": "c1",
    "user_id": "ada",
    "title": "Trains",
    "chat": {
        "title": "Trains",
        "models": ["small"],
        "history": {
            "currentId": "m2",
            "messages": {
                "m1": {"id": "m1", "parentId": None, "role": "user", "content": "hello"},
                "m2": {"id": "m2", "parentId": "m1", "role": "assistant", "content": "hi"},
            },
        },
    },
    "created_at": 5,
    "updated_at": 6,
}


class FakeUsers:
    def __init__(self) -> None:
        self.users = {user["id"]: dict(user) for user in (ADA, BOB)}
        self.group = {"id": "g1", "name": "readers", "user_id": "ada", "permissions": {}}
        self.granted = {"ada": {"chat": {"delete": True}}, "bob": {"chat": {"delete": False}}}

    async def find(self, user_id: str) -> Mapping[str, Any] | None:
        return self.users.get(user_id)

    async def find_by_email(self, email: str) -> Mapping[str, Any] | None:
        return next((user for user in self.users.values() if user["email"] == email), None)

    async def list(self, query: str, offset: int, limit: int | None) -> Sequence[Mapping[str, Any]]:
        found = [user for user in self.users.values() if query.lower() in user["name"].lower()]
        return found[offset : None if limit is None else offset + limit]

    async def change_settings(self, user_id: str, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if user_id not in self.users:
            return None
        user = self.users[user_id]
        user["settings"] = {**(user.get("settings") or {}), **settings}
        return user

    async def groups(self, user_id: str | None) -> Sequence[Mapping[str, Any]]:
        return [self.group] if user_id in (None, "bob") else []

    async def find_group(self, group_id: str) -> Mapping[str, Any] | None:
        return self.group if group_id == "g1" else None

    async def permissions(self, user_id: str) -> Mapping[str, Any] | None:
        return self.granted.get(user_id)


class FakeChats:
    def __init__(self) -> None:
        self.chats: dict[str, dict[str, Any]] = {"c1": _copied(CHAT)}

    async def find(self, chat_id: str, user_id: str | None) -> Mapping[str, Any] | None:
        chat = self.chats.get(chat_id)
        return None if chat is None or user_id not in (None, chat["user_id"]) else chat

    async def list(self, user_id: str, offset: int, limit: int | None) -> Sequence[Mapping[str, Any]]:
        found = [
            {key: chat[key] for key in ("id", "title", "updated_at", "created_at")}
            for chat in self.chats.values()
            if chat["user_id"] == user_id
        ]
        return found[offset : None if limit is None else offset + limit]

    async def create(self, user_id: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
        chat_id = f"c{len(self.chats) + 1}"
        chat = {**_copied(CHAT), "id": chat_id, "user_id": user_id, "chat": dict(document)}
        chat["title"] = document.get("title", "New Chat")
        self.chats[chat_id] = chat
        return chat

    async def change(self, chat_id: str, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
        chat = self.chats.get(chat_id)
        if chat is None:
            return None
        chat["chat"].update(document)
        chat["title"] = chat["chat"]["title"]
        return chat

    async def find_message(self, chat_id: str, message_id: str) -> Mapping[str, Any] | None:
        return self._messages(chat_id).get(message_id)

    async def put_message(self, chat_id: str, message_id: str, fields: Mapping[str, Any]) -> bool:
        if chat_id not in self.chats:
            return False
        self._messages(chat_id).setdefault(message_id, {"id": message_id}).update(fields)
        return True

    async def remove(self, chat_id: str, user_id: str | None) -> bool:
        if await self.find(chat_id, user_id) is None:
            return False
        del self.chats[chat_id]
        return True

    async def tags(self, chat_id: str) -> Sequence[Mapping[str, Any]]:
        return [{"id": "rail", "name": "Rail", "user_id": self.chats[chat_id]["user_id"]}]

    async def append_items(
        self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]
    ) -> Sequence[Any] | None:
        message = self._messages(chat_id).get(message_id)
        if message is None:
            return None
        message.setdefault(kind, []).extend(values)
        return list(message[kind])

    def _messages(self, chat_id: str) -> dict[str, Any]:
        chat = self.chats.get(chat_id)
        messages: dict[str, Any] = {} if chat is None else chat["chat"]["history"]["messages"]
        return messages


class FakeFiles:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files: dict[str, dict[str, Any]] = {}
        self.processed: list[tuple[str, str | None]] = []

    async def find(self, file_id: str) -> Mapping[str, Any] | None:
        return self.files.get(file_id)

    async def list(self, user_id: str | None) -> Sequence[Mapping[str, Any]]:
        return [file for file in self.files.values() if user_id in (None, file["user_id"])]

    async def store(self, user_id: str, upload: HostUpload) -> Mapping[str, Any]:
        file_id = upload.id or f"f{len(self.files) + 1}"
        self.directory.joinpath(file_id).write_bytes(upload.content)
        meta = {"name": upload.name, "content_type": upload.content_type, "data": dict(upload.meta or {})}
        data = {"status": "pending"} if upload.process else {}
        self.files[file_id] = {
            "id": file_id,
            "user_id": user_id,
            "filename": upload.name,
            "meta": meta,
            "data": data,
        }
        return self.files[file_id]

    async def path(self, file_id: str) -> Path | None:
        return self.directory / file_id if file_id in self.files else None

    async def set_data(self, file_id: str, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._merged(file_id, "data", data)

    async def set_meta(self, file_id: str, meta: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._merged(file_id, "meta", meta)

    async def process(self, file_id: str, collection_id: str | None) -> Mapping[str, Any] | None:
        self.processed.append((file_id, collection_id))
        return self._merged(file_id, "data", {"status": "completed", "content": "read text"})

    async def remove(self, file_id: str) -> bool:
        return self.files.pop(file_id, None) is not None

    def _merged(self, file_id: str, part: str, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        file = self.files.get(file_id)
        if file is not None:
            file[part].update(values)
        return file


class FakeModels:
    records = (
        {"id": "small", "name": "Small", "params": {"temperature": 0.1}, "meta": {"description": "fast"}},
        {"id": "tutor", "name": "Tutor", "base_model_id": "small", "params": {"system": "Teach."}},
    )

    async def find_record(self, model_id: str) -> Mapping[str, Any] | None:
        return next((record for record in self.records if record["id"] == model_id), None)

    async def list_records(self, user_id: str | None) -> Sequence[Mapping[str, Any]]:
        return self.records if user_id in (None, "ada") else self.records[:1]

    async def list(self, user_id: str) -> Sequence[Mapping[str, Any]]:
        return [{"id": record["id"], "name": record["name"]} for record in await self.list_records(user_id)]

    async def all(self) -> Mapping[str, Mapping[str, Any]]:
        return {str(record["id"]): {"id": record["id"], "name": record["name"]} for record in self.records}


class FakeCompletions:
    """Answers with the user and the last message; `asked` has the requests, `ended` is set after a stream."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.ended = threading.Event()
        self.endless = False

    async def run(
        self, user_id: str, body: Mapping[str, Any], *, whole_pipeline: bool, scope: Any
    ) -> Mapping[str, Any] | AsyncIterator[bytes]:
        self.asked.append({"user": user_id, "body": body, "whole": whole_pipeline, "scope": scope})
        if body["model"] == "missing":
            raise GatewayError(ErrorKind.NOT_FOUND, "cannot find model 'missing'")
        if body.get("stream"):
            return self._frames()
        text = f"{user_id}: {body['messages'][-1]['content']}"
        return {"choices": [{"message": {"role": "assistant", "content": text}}]}

    async def _frames(self) -> AsyncIterator[bytes]:
        try:
            for text in ("a", "b", "c"):
                yield f"data: {text}\n\n".encode()
            while self.endless:
                yield b"data: more\n\n"
        finally:
            self.ended.set()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[float(len(text)), 1.0] for text in texts]


class FakePlugins:
    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {
            "shout": {
                "id": "shout",
                "name": "Shout",
                "type": "filter",
                "is_active": True,
                "is_global": False,
            },
            "adder": {"id": "adder", "name": "Adder", "specs": [{"name": "add"}]},
        }
        self.set: dict[tuple[str, ...], dict[str, Any]] = {("function", "shout"): {"loud": 3}}
        self.threads: list[str] = []

    async def list(self, family: str, kind: str | None) -> Sequence[Mapping[str, Any]]:
        return [record for key, record in self.kept.items() if self._family(key) == family
                and kind in (None, record.get("type"))]  # fmt: skip

    async def find(self, family: str, plugin_id: str) -> Mapping[str, Any] | None:
        return self.kept.get(plugin_id) if self._family(plugin_id) == family else None

    async def valves(self, family: str, plugin_id: str) -> Mapping[str, Any] | None:
        return self.set.get((str(family), plugin_id))

    async def set_valves(self, family: str, plugin_id: str, values: Mapping[str, Any]) -> bool:
        if await self.find(family, plugin_id) is None:
            return False
        self.set[str(family), plugin_id] = dict(values)
        return True

    async def user_valves(self, user_id: str, family: str, plugin_id: str) -> Mapping[str, Any] | None:
        return self.set.get((user_id, str(family), plugin_id))

    async def set_user_valves(
        self, user_id: str, family: str, plugin_id: str, values: Mapping[str, Any]
    ) -> bool:
        self.set[user_id, str(family), plugin_id] = dict(values)
        return True

    async def tools(self, tool_ids: Sequence[str], scope: Any) -> Mapping[str, Mapping[str, Any]]:
        async def add(a: int, b: int) -> int:
            self.threads.append(threading.current_thread().name)
            return a + b

        return {
            tool_id: {"tool_id": tool_id, "callable": add, "spec": {"name": "add"}} for tool_id in tool_ids
        }

    def _family(self, plugin_id: str) -> str:
        return "tool" if plugin_id == "adder" else "function"


class FakeKnowledge:
    collection: ClassVar = {"id": "k1", "name": "Timetables", "user_id": "ada", "description": ""}

    async def find(self, collection_id: str) -> Mapping[str, Any] | None:
        return self.collection if collection_id == "k1" else None

    async def list(self, user_id: str) -> Sequence[Mapping[str, Any]]:
        return [self.collection] if user_id == "ada" else []

    async def search(
        self, user_id: str, names: Sequence[str], query: str, k: int | None
    ) -> Sequence[Mapping[str, Any]]:
        passages = [
            {"text": f"{query} {number}", "score": 1.0 / number, "metadata": {"name": name}}
            for name in names
            for number in (1, 2)
        ]
        return passages[:k]


class FakeSettings:
    values: ClassVar[dict[str, Any]] = {
        "RAG_TOP_K": 4,
        "WEBUI_URL": "https://gateway.example.org",
        "TASK_MODEL": "small",
    }

    async def get(self, name: str) -> Any:
        return self.values.get(name)

    async def all(self) -> Mapping[str, Any]:
        return self.values


def make_host(directory: Path) -> PluginHost:
    """Return a host that keeps contents and plugins' own data below a directory."""
    directory.joinpath("blobs").mkdir()
    return PluginHost(
        users=FakeUsers(),
        chats=FakeChats(),
        files=FakeFiles(directory / "blobs"),
        models=FakeModels(),
        completions=FakeCompletions(),
        plugins=FakePlugins(),
        knowledge=FakeKnowledge(),
        settings=FakeSettings(),
        data_dir=directory / "plugin-data",
        secret_key="the secret of the tokens",
    )


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def make_scope(user_id: str) -> CallScope:
    """Return a call for a user."""
    user = User(user_id, f"{user_id}@example.org", user_id.title(), Role.USER)
    return CallScope(Actor(user, CredentialKind.SESSION, (), {}), EventTarget(user_id, "c1", "m2", "s1"))
