"""Tasks of users on every node: their answers by the database, all others by messages between the nodes."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol

from gatewayd.nodes.messages import NodeMessages
from gatewayd.tasks import TaskInfo, TaskOwner, TaskRegistry

log = logging.getLogger(__name__)

LISTED, STOPPED, STOPPED_CHATS = "tasks.list", "tasks.stop", "tasks.stop_chats"

MAX_LISTED_TASKS: Final = 2000
"""Maximum number of tasks that a node names, the newest ones."""


MAX_STOPPED_CHATS: Final = 1000
"""Number of chats of one request to stop their tasks."""


class ClaimedRuns(Protocol):
    """The answers that nodes have claimed in the database."""

    async def elsewhere(self) -> Sequence[TaskInfo]:
        """Return those of other nodes, oldest first."""
        ...

    async def stop_elsewhere(self, task_id: str) -> bool:
        """Have another node stop one, and wait for its end; False without it."""
        ...

    def owns(self, task_id: str) -> bool:
        """Return whether a task of this node is a claimed answer."""
        ...


class NodeTasks:
    """Implements `pipeline.runs.interfaces.RemoteRuns`.

    Without Redis the other nodes show and stop answers only, within a second.
    """

    def __init__(self, runs: ClaimedRuns, messages: NodeMessages, tasks: TaskRegistry) -> None:
        self._runs = runs
        self._messages = messages
        self._tasks = tasks
        messages.serve(LISTED, self._list)
        messages.serve(STOPPED, self._stop)

    async def elsewhere(
        self, *, chat_id: str | None = None, task_id: str | None = None
    ) -> Sequence[TaskInfo]:
        """Return the tasks of other nodes, oldest first: all, those of one chat, or one.

        Of nodes that do not reply only the answers are known.
        """
        # Every node reads every reply, so that they are to be short.
        asked = self._messages.gather(LISTED, {"chat": chat_id, "id": task_id})
        claimed, told = await asyncio.gather(self._runs.elsewhere(), asked)
        found = [info for info in (*claimed, *_told_tasks(told)) if _is_wanted(info, chat_id, task_id)]
        return sorted(found, key=lambda info: info.started_at)

    async def stop_elsewhere(self, task_id: str) -> bool:
        """Have another node stop a task, and wait for its end; False without the task.

        Raises timeout when its node does not stop it in time, unavailable when it does not reply.
        """
        if await self._runs.stop_elsewhere(task_id):
            return True
        return bool(await self._messages.ask(STOPPED, {"id": task_id}))

    async def _list(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        wanted = body.get("chat"), body.get("id")
        own = [
            info
            for info in self._tasks.started()
            if _is_wanted(info, *wanted) and not self._runs.owns(info.id)
        ]
        return [asdict(info) for info in own[-MAX_LISTED_TASKS:]]

    async def _stop(self, body: Mapping[str, Any]) -> bool | None:
        if self._tasks.find(body["id"]) is None:
            return None
        return await self._tasks.stop(body["id"]) or None


class ChatTasks:
    """Implements `chats.interfaces.ChatTaskStopper` for every node that can be reached."""

    def __init__(self, tasks: TaskRegistry, messages: NodeMessages) -> None:
        self._tasks = tasks
        self._messages = messages
        messages.serve(STOPPED_CHATS, self._take_stop)

    async def stop(self, chat_ids: Sequence[str]) -> None:
        """Stop the tasks of chats, and wait for their end; on other nodes for 2 s."""
        for start in range(0, len(chat_ids), MAX_STOPPED_CHATS):
            part = chat_ids[start : start + MAX_STOPPED_CHATS]
            elsewhere = self._messages.gather(STOPPED_CHATS, {"chats": list(part)})
            await asyncio.gather(self._stop(part), elsewhere)

    async def _take_stop(self, body: Mapping[str, Any]) -> None:
        await self._stop(body["chats"])

    async def _stop(self, chat_ids: Sequence[str]) -> None:
        wanted = set(chat_ids)
        found = [info.id for info in self._tasks.started() if info.purpose.chat_id in wanted]
        # One that does not end holds up none of the others.
        await asyncio.gather(*map(self._tasks.stop, found))


def _is_wanted(info: TaskInfo, chat_id: str | None, task_id: str | None) -> bool:
    return chat_id in {None, info.purpose.chat_id} and task_id in {None, info.id}


def _told_tasks(told: Sequence[Any]) -> Sequence[TaskInfo]:
    """Return the tasks that other nodes name; those of a reply that is not understood are left out."""
    found: list[TaskInfo] = []
    for listed in told:
        try:
            found += [_info(each) for each in listed]
        except (KeyError, TypeError, ValueError) as error:
            log.warning("the tasks of another node are not understood: %r", error)
    return found


def _info(told: Mapping[str, Any]) -> TaskInfo:
    # A later version may tell more.
    owner = TaskOwner(*(told["purpose"][name] for name in ("user_id", "chat_id", "message_id")))
    return TaskInfo(told["id"], told["name"], owner, int(told["started_at"]))
