"""What plugins need: a store for them, and what they may ask of the gateway.

Records that plugins get are mappings in the shapes that they know (peer-compatible), made anew for each call.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gatewayd.plugins.records import Plugin, PluginFamily, PluginProblem
from gatewayd.plugins.runtime.context import CallScope

Record = Mapping[str, Any]


class PluginStore(Protocol):
    """Plugins of the database, and what is kept about those from files (their valves and switches).

    All changes are committed on return, or at the end of the surrounding transaction.
    """

    async def list(self, family: PluginFamily | None = None) -> Sequence[Plugin]:
        """Return the plugins by id, with their sources and grants.

        One whose valves cannot be read is there without them, locked, and with a problem that says so.
        """
        ...

    async def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        """Return one plugin; not_configured when its valves cannot be read."""
        ...

    async def put(self, plugin: Plugin) -> None:
        """Insert or replace a plugin and its grants; the valves of a locked one stay as they are stored."""
        ...

    async def remove(self, family: PluginFamily, plugin_id: str) -> bool:
        """Delete a plugin, its grants, its valves and those of every user."""
        ...

    async def note(self, family: PluginFamily, plugin_id: str, problem: PluginProblem | None) -> None:
        """Keep the last problem alone; nothing happens when there is no such plugin."""
        ...


class UserValvesStore(Protocol):
    """What users set for themselves in plugins."""

    async def find(self, user_id: str, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the values; None when the user set none."""
        ...

    async def put(self, user_id: str, family: PluginFamily, plugin_id: str, values: dict[str, Any]) -> None:
        """Replace the values."""
        ...


class HostUsers(Protocol):
    """Accounts and groups, as `__user__` and the peer's group record show them."""

    async def find(self, user_id: str) -> Record | None: ...  # noqa: D102
    async def find_by_email(self, email: str) -> Record | None: ...  # noqa: D102
    async def list(self, query: str, offset: int, limit: int | None) -> Sequence[Record]: ...  # noqa: D102
    async def change_settings(self, user_id: str, settings: Record) -> Record | None: ...  # noqa: D102
    async def groups(self, user_id: str | None) -> Sequence[Record]: ...  # noqa: D102
    async def find_group(self, group_id: str) -> Record | None: ...  # noqa: D102

    async def permissions(self, user_id: str) -> Record | None:
        """Return the permissions that a user has in effect; None when there is no such user."""
        ...


class HostChats(Protocol):
    """Stored chats as clients see them; `user_id` None leaves the owner unchecked."""

    async def find(self, chat_id: str, user_id: str | None) -> Record | None: ...  # noqa: D102
    async def list(self, user_id: str, offset: int, limit: int | None) -> Sequence[Record]: ...  # noqa: D102
    async def create(self, user_id: str, document: Record) -> Record: ...  # noqa: D102
    async def change(self, chat_id: str, document: Record) -> Record | None: ...  # noqa: D102
    async def find_message(self, chat_id: str, message_id: str) -> Record | None: ...  # noqa: D102
    async def put_message(self, chat_id: str, message_id: str, fields: Record) -> bool: ...  # noqa: D102
    async def remove(self, chat_id: str, user_id: str | None) -> bool: ...  # noqa: D102
    async def tags(self, chat_id: str) -> Sequence[Record]: ...  # noqa: D102

    async def append_items(
        self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Add to `statusHistory`, `embeds`, `files` or `sources` of a message; return the whole list.

        None when there is no such message.
        """
        ...


class HostFiles(Protocol):
    """Files as clients see them (2.6)."""

    async def find(self, file_id: str) -> Record | None: ...  # noqa: D102
    async def list(self, user_id: str | None) -> Sequence[Record]: ...  # noqa: D102
    async def store(self, user_id: str, upload: "HostUpload") -> Record: ...  # noqa: D102
    async def path(self, file_id: str) -> Path | None: ...  # noqa: D102
    async def set_data(self, file_id: str, data: Record) -> Record | None: ...  # noqa: D102
    async def set_meta(self, file_id: str, meta: Record) -> Record | None: ...  # noqa: D102

    async def process(self, file_id: str, collection_id: str | None) -> Record | None:
        """Make the text and vectors of a file, in a collection when one is named, and wait for the end.

        Returns the file; None when there is none. Raises GatewayError when it cannot be read.
        """
        ...

    async def remove(self, file_id: str) -> bool: ...  # noqa: D102


class HostModels(Protocol):
    """Models as listings show them (2.4), and what administrators keep about them."""

    async def find_record(self, model_id: str) -> Record | None: ...  # noqa: D102
    async def list_records(self, user_id: str | None) -> Sequence[Record]: ...  # noqa: D102
    async def list(self, user_id: str) -> Sequence[Record]: ...  # noqa: D102
    async def all(self) -> Mapping[str, Record]: ...  # noqa: D102


class HostCompletions(Protocol):
    """Chat requests from inside."""

    async def run(
        self, user_id: str, body: Record, *, whole_pipeline: bool, scope: CallScope | None
    ) -> "Record | AsyncIterator[bytes]":
        """Answer a chat request for a user: a completion, or `data:` frames when `stream` is true.

        Without `whole_pipeline` the model is asked directly: no filters, documents or tools. The right to use
        the model is checked either way. Raises GatewayError.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...  # noqa: D102


class HostPlugins(Protocol):
    """Other plugins: their records and valves, and the tools that a user may call."""

    async def list(self, family: PluginFamily, kind: str | None) -> Sequence[Record]: ...  # noqa: D102
    async def find(self, family: PluginFamily, plugin_id: str) -> Record | None: ...  # noqa: D102
    async def valves(self, family: PluginFamily, plugin_id: str) -> Record | None: ...  # noqa: D102
    async def set_valves(self, family: PluginFamily, plugin_id: str, values: Record) -> bool: ...  # noqa: D102
    async def user_valves(self, user_id: str, family: PluginFamily, plugin_id: str) -> Record | None: ...  # noqa: D102
    async def set_user_valves(  # noqa: D102
        self, user_id: str, family: PluginFamily, plugin_id: str, values: Record
    ) -> bool: ...
    async def tools(self, tool_ids: Sequence[str], scope: CallScope) -> Mapping[str, Record]: ...  # noqa: D102


class HostKnowledge(Protocol):
    """Collections and the search in them."""

    async def find(self, collection_id: str) -> Record | None: ...  # noqa: D102
    async def list(self, user_id: str) -> Sequence[Record]: ...  # noqa: D102
    async def search(  # noqa: D102
        self, user_id: str, names: Sequence[str], query: str, k: int | None
    ) -> Sequence[Record]: ...


class HostSettings(Protocol):
    """Settings by their upper-case names; secrets are not among them."""

    async def get(self, name: str) -> Any: ...  # noqa: D102
    async def all(self) -> Record: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class HostUpload:
    """A file that a plugin stores; `meta` is kept beside it, `process` asks for its text and vectors.

    `id` is the one that the plugin chose, None for a new one.
    """

    name: str
    content: bytes
    content_type: str | None = None
    meta: Mapping[str, Any] | None = None
    process: bool = False
    id: str | None = None


@dataclass(frozen=True, slots=True)
class PluginHost:
    """What the compatible import names reach the gateway through.

    `data_dir` is a directory for what plugins keep themselves, not that of the gateway's own data.
    `secret_key` is derived from the secret of the gateway (`names.keys`).
    """

    users: HostUsers
    chats: HostChats
    files: HostFiles
    models: HostModels
    completions: HostCompletions
    plugins: HostPlugins
    knowledge: HostKnowledge
    settings: HostSettings
    data_dir: Path
    secret_key: str
