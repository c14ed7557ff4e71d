"""Interfaces of plugins: their stores, and the host through which they call the gateway.

Records that the host returns are mappings in the formats of Open WebUI, made anew for each call.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gatewayd.plugins.records import Plugin, PluginFamily, PluginProblem
from gatewayd.plugins.runtime.context import CallScope

Record = Mapping[str, Any]


class PluginStore(Protocol):
    """Store of the plugins in the database, and of the valves and switches of plugins from files.

    All changes are committed on return, or at the end of the surrounding transaction.
    """

    async def list(self, family: PluginFamily | None = None) -> Sequence[Plugin]:
        """Return the plugins by id, with their sources and grants.

        A plugin whose valves cannot be decrypted has none, is locked, and has a problem with the reason.
        """
        ...

    async def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        """Return one plugin, None when absent; raises not_configured when its valves cannot be decrypted."""
        ...

    async def put(self, plugin: Plugin) -> None:
        """Insert or replace a plugin and its grants; the valves of a locked one stay as they are stored."""
        ...

    async def remove(self, family: PluginFamily, plugin_id: str) -> bool:
        """Delete a plugin, its grants, its valves and those of all users; False when it is absent."""
        ...

    async def note(self, family: PluginFamily, plugin_id: str, problem: PluginProblem | None) -> None:
        """Store only the last problem of a plugin, None to clear it; an absent plugin is ignored."""
        ...


class UserValvesStore(Protocol):
    """Store of the valves that users set for themselves."""

    async def find(self, user_id: str, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the values; None when the user set none."""
        ...

    async def put(self, user_id: str, family: PluginFamily, plugin_id: str, values: dict[str, Any]) -> None:
        """Replace the values."""
        ...


class HostUsers(Protocol):
    """Accounts and groups, in the formats of `__user__` and of the group record of Open WebUI."""

    async def find(self, user_id: str) -> Record | None:
        """Return an account in the format of `__user__`; None when absent."""
        ...

    async def find_by_email(self, email: str) -> Record | None:
        """Return the account with an e-mail address, compared without case; None when absent."""
        ...

    async def list(self, query: str, offset: int, limit: int | None) -> Sequence[Record]:
        """Return the accounts whose name or address contains `query`, oldest first.

        All from `offset` on when `limit` is None.
        """
        ...

    async def change_settings(self, user_id: str, settings: Record) -> Record | None:
        """Merge into the settings of an account, top-level keys only, and return it; None when absent."""
        ...

    async def groups(self, user_id: str | None) -> Sequence[Record]:
        """Return the groups of a user, or all groups for None, sorted by name."""
        ...

    async def find_group(self, group_id: str) -> Record | None:
        """Return a group; None when absent."""
        ...

    async def permissions(self, user_id: str) -> Record | None:
        """Return the permissions that a user has in effect; None when there is no such user."""
        ...


class HostChats(Protocol):
    """Stored chats in the format of the API; `user_id` None skips the check of the owner."""

    async def find(self, chat_id: str, user_id: str | None) -> Record | None:
        """Return a chat with its messages; None when absent or owned by another user than `user_id`."""
        ...

    async def list(self, user_id: str, offset: int, limit: int | None) -> Sequence[Record]:
        """Return the unarchived chats of a user without messages, most recently changed first.

        Empty when the user is absent; all from `offset` on when `limit` is None.
        """
        ...

    async def create(self, user_id: str, document: Record) -> Record:
        """Store a new chat and return it.

        Raises not_found when the user is absent, invalid_request for a faulty document.
        """
        ...

    async def change(self, chat_id: str, document: Record) -> Record | None:
        """Merge `document` into a chat and return it; existing messages are updated field by field.

        None when the chat is absent. Raises invalid_request for a faulty document.
        """
        ...

    async def find_message(self, chat_id: str, message_id: str) -> Record | None:
        """Return a message with its place in the tree; None when the chat or the message is absent."""
        ...

    async def put_message(self, chat_id: str, message_id: str, fields: Record) -> bool:
        """Merge `fields` into a message, or append a new one and make it current.

        False when the chat or its owner is absent.
        """
        ...

    async def remove(self, chat_id: str, user_id: str | None) -> bool:
        """Delete a chat; False when it is absent or owned by another user than `user_id`.

        Raises forbidden when `user_id` is given and the user lacks the permission chat.delete.
        """
        ...

    async def tags(self, chat_id: str) -> Sequence[Record]:
        """Return the tags of a chat; empty when the chat is absent."""
        ...

    async def append_items(
        self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Append to `statusHistory`, `embeds`, `files` or `sources` of a message; return the whole list.

        None when the message is absent. Raises invalid_request for another `kind`.
        """
        ...


class HostFiles(Protocol):
    """Files in the format of the API."""

    async def find(self, file_id: str) -> Record | None:
        """Return a file with its text as `data.content`; None when absent."""
        ...

    async def list(self, user_id: str | None) -> Sequence[Record]:
        """Return the files of a user, or of all users for None, without their texts, newest first."""
        ...

    async def store(self, user_id: str, upload: "HostUpload") -> Record:
        """Store a file owned by the user and return it.

        Raises not_found when the user is absent, forbidden when the account is inactive or lacks
        chat.file_upload, too_large, invalid_request, and conflict for an id that is taken.
        """
        ...

    async def path(self, file_id: str) -> Path | None:
        """Return the path of the content on this machine; None when the file is absent."""
        ...

    async def set_data(self, file_id: str, data: Record) -> Record | None:
        """Merge into the data of a file and return it; `content` replaces its text. None when absent.

        `status` and `error` are ignored. Raises empty_content for a blank text, invalid_request for one that
        is not text, conflict while the file is being processed.
        """
        ...

    async def set_meta(self, file_id: str, meta: Record) -> Record | None:
        """Merge into the metadata of a file and return it; None when absent.

        `name` renames the file, `data` is merged into the client metadata. `size`, `file_hash` and
        `content_type` are ignored. Raises invalid_request for a faulty value.
        """
        ...

    async def process(self, file_id: str, collection_id: str | None) -> Record | None:
        """Extract and embed a file, optionally into a collection, wait for the end, and return the file.

        None when the file is absent. Raises not_found when its owner or the collection is absent,
        forbidden when the owner may not change the collection, empty_content when the file cannot be read,
        and timeout after five minutes.
        """
        ...

    async def remove(self, file_id: str) -> bool:
        """Delete a file with its content; False when absent."""
        ...


class HostModels(Protocol):
    """Models in the format of the model list, and the records that administrators keep of them."""

    async def find_record(self, model_id: str) -> Record | None:
        """Return the record of a model; None when an administrator has made none."""
        ...

    async def list_records(self, user_id: str | None) -> Sequence[Record]:
        """Return all records for None, or those of models that a user may use."""
        ...

    async def list(self, user_id: str) -> Sequence[Record]:
        """Return the models that a user may use, sorted by name; empty when the user is absent."""
        ...

    async def all(self) -> Mapping[str, Record]:
        """Return every model by id, without a check of its access list."""
        ...


class HostCompletions(Protocol):
    """Chat requests and embeddings."""

    async def run(
        self, user_id: str, body: Record, *, whole_pipeline: bool, scope: CallScope | None
    ) -> "Record | AsyncIterator[bytes]":
        """Answer a chat request for a user: a completion, or `data:` frames when `stream` is true.

        Without `whole_pipeline` the gateway adds no documents and no tools, and runs only the filters that
        have not yet run on the request of `scope`. The access list of the model is checked either way.
        Raises GatewayError.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector for each text, made by the embedding model of searches; empty for no texts.

        Raises not_configured when no embedding model is set up, and the errors of the model.
        """
        ...


class HostPlugins(Protocol):
    """Records and valves of other plugins, and the tools that a user may call."""

    async def list(self, family: PluginFamily, kind: str | None) -> Sequence[Record]:
        """Return the plugins of a family, sorted by id; `kind` None means every kind.

        Empty for an unknown kind.
        """
        ...

    async def find(self, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return the record of one plugin; None when absent."""
        ...

    async def valves(self, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return the stored valves without defaults; None when the plugin is absent.

        Raises not_configured when they cannot be decrypted.
        """
        ...

    async def set_valves(self, family: PluginFamily, plugin_id: str, values: Record) -> bool:
        """Merge into the valves of a plugin; False when it is absent.

        A value of None restores the default. Raises invalid_request that names the faulty field, and
        not_configured when plugins are disabled.
        """
        ...

    async def user_valves(self, user_id: str, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return the valves that a user set; None when nothing is set.

        None as well when the user is absent or may not use the plugin.
        """
        ...

    async def set_user_valves(
        self, user_id: str, family: PluginFamily, plugin_id: str, values: Record
    ) -> bool:
        """Merge into the valves of a user; False when the user is absent or may not use the plugin.

        A value of None restores the default. Raises invalid_request that names the faulty field.
        """
        ...

    async def tools(self, tool_ids: Sequence[str], scope: CallScope) -> Mapping[str, Record]:
        """Return the tools that the user of a call may use, by name, in the format of `__tools__`.

        Unknown and unreadable ids are left out.
        """
        ...


class HostKnowledge(Protocol):
    """Collections and retrieval."""

    async def find(self, collection_id: str) -> Record | None:
        """Return a collection without a check of its access list; None when absent."""
        ...

    async def list(self, user_id: str) -> Sequence[Record]:
        """Return the collections that a user may read, last changed first; empty when the user is absent."""
        ...

    async def search(self, user_id: str, names: Sequence[str], query: str, k: int | None) -> Sequence[Record]:
        """Return the passages of collections or files (`file-<id>`) for a query, best first.

        Each is `{"text", "score", "metadata"}`; `k` None means the configured number. Raises not_found for a
        name that the user may not read, forbidden for an inactive account.
        """
        ...


class HostSettings(Protocol):
    """Settings by upper-case name, without secrets."""

    async def get(self, name: str) -> Any:
        """Return the value of a setting; None when it does not exist or is a secret."""
        ...

    async def all(self) -> Record:
        """Return every setting that is not a secret, by name."""
        ...


@dataclass(frozen=True, slots=True)
class HostUpload:
    """A file that a plugin stores, with client metadata in `meta`.

    `process` requests extraction and embedding. `id` is the id that the plugin chose, None for a new one.
    """

    name: str
    content: bytes
    content_type: str | None = None
    meta: Mapping[str, Any] | None = None
    process: bool = False
    id: str | None = None


@dataclass(frozen=True, slots=True)
class SharedWindow:
    """A sliding window of `seconds` with a limit, and the amount that is to be counted in it."""

    name: str
    seconds: int
    limit: int
    amount: int = 1


class SharedWindows(Protocol):
    """Windows that all nodes count together."""

    async def take(self, owner: str, windows: Sequence[SharedWindow]) -> Sequence[float] | None:
        """Count the amounts in all windows, or in none and return the seconds to wait, inf for never.

        `owner` is the id of the plugin. All waits are 0.0 when they are counted. None when they cannot be
        counted together now; raises unavailable if the settings refuse requests then.
        """
        ...


@dataclass(frozen=True, slots=True)
class PluginHost:
    """The interfaces of the gateway that the `open_webui` modules call.

    `data_dir` is the directory for files of plugins, apart from the data of the gateway. `secret_key` is
    derived from the secret of the gateway (`plugin_host.settings.derive_secret`).
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
