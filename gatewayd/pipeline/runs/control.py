"""Lists and stops the tasks that users started (gatewayd-api(7), ENDPOINTS)."""

from collections.abc import Sequence

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.events.message_effects import is_kept
from gatewayd.pipeline.runs.interfaces import OwnedChats, RemoteRuns
from gatewayd.tasks import TaskInfo, TaskRegistry


class TaskControl:
    """Lists and stops tasks for their users, for the owners of their chats, and for administrators."""

    def __init__(self, tasks: TaskRegistry, chats: OwnedChats, remote: RemoteRuns) -> None:
        self._tasks = tasks
        self._chats = chats
        self._remote = remote

    async def every(self) -> Sequence[TaskInfo]:
        """Return the tasks of all users on every node, oldest first."""
        return await self._find()

    async def of_chat(self, actor: Actor, chat_id: str) -> Sequence[TaskInfo]:
        """Return the tasks of a chat; of another user's chat only the actor's own tasks."""
        found = await self._find(chat_id) if chat_id else []
        if all(_is_own(info, actor) for info in found) or await self._may_have(actor, chat_id):
            return found
        return [info for info in found if _is_own(info, actor)]

    async def stop(self, actor: Actor, task_id: str) -> bool:
        """Stop a task and wait for its end; return False if the actor may stop no such task."""
        info = self._tasks.find(task_id)
        if info is None:
            elsewhere = await self._remote.elsewhere(task_id=task_id)
            info = next((each for each in elsewhere if each.id == task_id), None)
        if info is None:
            return False
        if not _is_own(info, actor) and not await self._may_have(actor, info.purpose.chat_id):
            return False
        return await self._stop(task_id)

    async def stop_chat(self, actor: Actor, chat_id: str) -> int:
        """Stop the tasks of a chat and return the count; raise not_found for another user's chat."""
        found = await self.of_chat(actor, chat_id)
        if not found and not await self._may_have(actor, chat_id):
            raise not_found("chat", chat_id)
        return sum([await self._stop(info.id) for info in found])

    async def _find(self, chat_id: str | None = None) -> Sequence[TaskInfo]:
        elsewhere = await self._remote.elsewhere(chat_id=chat_id)
        found = [*self._tasks.started(chat_id=chat_id), *elsewhere]
        return sorted(found, key=lambda info: info.started_at)

    async def _stop(self, task_id: str) -> bool:
        return await self._tasks.stop(task_id) or await self._remote.stop_elsewhere(task_id)

    async def _may_have(self, actor: Actor, chat_id: str) -> bool:
        if actor.is_admin:
            return True
        if not is_kept(chat_id):
            return False
        try:
            await self._chats.owned(actor, chat_id)
        except GatewayError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return False
            raise
        return True


def _is_own(info: TaskInfo, actor: Actor) -> bool:
    return actor.is_admin or info.purpose.user_id == actor.user_id
