"""The part of the client for what goes on: stored chats, tasks and events."""

from collections.abc import Generator
from typing import Any

from gatewayctl.asking import Asking, segment
from gatewayctl.transport import Frame
from gatewayctl.wire import events, stored_chats, tasks


class LiveClient(Asking):
    """One method for each control route of stored chats, tasks and events."""

    def list_chats(
        self,
        query: str = "",
        user: str | None = None,
        *,
        archived: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> stored_chats.StoredChatList:
        """Return chats, last changed first, either the archived ones or the others."""
        found = {
            "query": query or None,
            "user": user,
            "archived": "true" if archived else None,
            "limit": limit,
            "offset": offset or None,
        }
        return self._read("/v1/chats", stored_chats.StoredChatList, **found)

    def get_chat(self, chat_id: str, *, tree: bool = False) -> stored_chats.StoredChatDetail:
        """Return one chat with the messages of its current branch, or with all."""
        path = f"/v1/chats/{segment(chat_id)}"
        return self._read(path, stored_chats.StoredChatDetail, tree="true" if tree else None)

    def export_chats(self, request: stored_chats.ChatExport) -> Generator[dict[str, Any], None, None]:
        """Yield whole chats as clients of the public API get them."""
        return self._transport.stream("/v1/chats/export", request)

    def import_chats(
        self, request: stored_chats.ChatImport, *, dry_run: bool = False
    ) -> stored_chats.ChatsImported:
        """Keep whole chats for a user."""
        return self._write("POST", "/v1/chats/import", stored_chats.ChatsImported, request, dry_run)

    def remove_chat(self, chat_id: str, *, dry_run: bool = False) -> stored_chats.StoredChatWritten:
        """Stop what runs for a chat and delete it."""
        path = f"/v1/chats/{segment(chat_id)}"
        return self._write("DELETE", path, stored_chats.StoredChatWritten, None, dry_run)

    def list_tasks(self, chat: str | None = None, user: str | None = None) -> tasks.TaskList:
        """Return the running tasks, all or those of a chat or a user."""
        return self._read("/v1/tasks", tasks.TaskList, chat=chat, user=user)

    def stop_tasks(self, request: tasks.TaskStop) -> tasks.TasksStopped:
        """Stop a task, or all tasks of a chat, and wait until they have ended."""
        return self._transport.call("POST", "/v1/tasks/stop", tasks.TasksStopped, {}, request)

    def follow_events(
        self,
        user: str | None = None,
        chat: str | None = None,
        *,
        since: str | None = None,
        everybody: bool = False,
    ) -> Generator[Frame, None, None]:
        """Yield the events of a user, of a chat's owner or of everybody as they come, after the id `since`.

        The first one is named `session`. It ends with an `unreachable` failure when the connection does;
        closing the iterator closes the connection.
        """
        query = {"user": user, "chat": chat, "since": since, "everybody": "true" if everybody else None}
        return self._transport.listen("/v1/events", query)

    def list_calls(self, user: str | None = None) -> events.CallList:
        """Return the calls that wait for an answer, all or those of one user."""
        return self._read("/v1/events/calls", events.CallList, user=user)

    def answer_call(self, call_id: str, request: events.CallAnswer) -> events.Call:
        """Answer a call and return it; conflict when somebody was faster."""
        path = f"/v1/events/calls/{segment(call_id)}"
        return self._transport.call("POST", path, events.Call, {}, request)
