"""Routes of `/v1/tasks`: running tasks, and how to stop them."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import tasks as wire
from gatewayd.errors import invalid, not_found
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, timestamp
from gatewayd.http.routes import Route
from gatewayd.pipeline.runs.control import TaskControl
from gatewayd.tasks import TaskInfo


class ChatOwners(Protocol):
    """Finds the owners of chats."""

    async def find_owner(self, chat_id: str) -> str | None:
        """Return the id of the owner of a chat; None for an unknown chat."""
        ...


class ControlTaskRoutes:
    """Routes of tasks on the control socket."""

    def __init__(
        self, stopping: TaskControl, chats: ChatOwners, principals: GranteeFinder, viewers: ControlActors
    ) -> None:
        self._stopping = stopping
        self._chats = chats
        self._principals = principals
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_TASKS, self.list),
            serve(routes.STOP_TASKS, self.stop),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `TaskList`; `?chat=` limits it to the tasks of one chat, `?user=` to those of one user."""
        chat_id, ref = request.query.get("chat"), request.query.get("user")
        user_id = None if ref is None else (await self._principals.owner(ref)).id
        found = await self._of_chat(chat_id) if chat_id is not None else await self._stopping.every()
        own_tasks = [info for info in found if user_id is None or info.purpose.user_id == user_id]
        return control_reply(wire.TaskList(tasks=await _render(own_tasks, self._principals)))

    async def stop(self, request: web.Request) -> web.StreamResponse:
        """Take `TaskStop`, answer `TasksStopped` after the tasks have ended; not_found for unknown ones."""
        wanted = await read_model(request, wire.TaskStop)
        if (wanted.task is None) == (wanted.chat is None):
            raise invalid("cannot stop tasks: name a task or a chat", param="task")
        if wanted.chat is not None:
            found = await self._of_chat(wanted.chat)
        else:
            found = [info for info in await self._stopping.every() if info.id == wanted.task]
            if not found:
                raise not_found("task", wanted.task or "")
        shown = await _render(found, self._principals)
        actor = self._viewers.operator(request[PEER])
        for info in found:
            await self._stopping.stop(actor, info.id)
            audit(request, "task stop", info.id)
        return control_reply(wire.TasksStopped(tasks=shown))

    async def _of_chat(self, chat_id: str) -> Sequence[TaskInfo]:
        """Return the tasks of a chat; not_found for an unknown chat without tasks."""
        found = [info for info in await self._stopping.every() if info.purpose.chat_id == chat_id]
        if not found and await self._chats.find_owner(chat_id) is None:
            raise not_found("chat", chat_id)
        return found


async def _render(found: Sequence[TaskInfo], principals: GranteeFinder) -> list[wire.Task]:
    emails = await principals.emails(info.purpose.user_id for info in found)
    return [
        wire.Task(
            id=info.id,
            name=info.name,
            user_id=info.purpose.user_id,
            user=emails[info.purpose.user_id],
            chat_id=info.purpose.chat_id,
            message_id=info.purpose.message_id,
            started_at=timestamp(info.started_at),
        )
        for info in found
    ]
