"""Stored chats, tasks and events behind the control socket."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gatewayd.accounts.records import Actor, CredentialKind, User
from gatewayd.bus.memory import MemoryBus
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import Hub
from gatewayd.events.records import EventTarget
from gatewayd.events.service import EventService
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.events import ControlEventRoutes
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.stored_chats import ControlStoredChatRoutes
from gatewayd.http.control.tasks import ControlTaskRoutes
from gatewayd.http.routes import Route
from gatewayd.nodes.runs import LocalRuns
from gatewayd.pipeline.runs.control import TaskControl
from gatewayd.tasks import TaskOwner
from tests.fakes.accounts.services import Accounts
from tests.fakes.storage.chats_site import ChatHouse, document
from tests.fakes.storage.memory_chats import MemoryEffects


@dataclass
class LiveServices:
    """The services over one state in memory; an unheard call gives up after `grace` seconds."""

    accounts: Accounts
    grace: float = 5.0
    house: ChatHouse = field(init=False)

    def __post_init__(self) -> None:
        self.house = ChatHouse(self.accounts)
        self.tasks = self.house.tasks
        self.hub = Hub(MemoryBus())
        self.calls = EventCalls(self.hub, timeout=0, grace=self.grace)
        self.events = EventService(
            MemoryEffects(self.house.state), self.hub, self.calls, DeferredWrites(self.tasks)
        )

    def rows(self, viewers: ControlActors) -> Sequence[Route]:
        principals = GranteeFinder(self.accounts.users, self.accounts.groups)
        chats = self.house.chats
        stored = ControlStoredChatRoutes(self.house.services, principals, viewers, self.house.notify)
        tasks = ControlTaskRoutes(TaskControl(self.tasks, chats, LocalRuns()), chats, principals, viewers)
        return [
            *stored.routes(),
            *tasks.routes(),
            *ControlEventRoutes(self.hub, self.calls, chats, principals).routes(),
        ]

    async def chat(self, user: User, title: str = "Birds", **more: Any) -> str:
        """Make a chat of one question and one answer, and return its id."""
        actor = Actor(user, CredentialKind.CONTROL, (), {})
        return str((await self.house.chats.create(actor, document(title, **more)))["id"])

    def work(self, user: User, chat_id: str = "", message_id: str = "") -> str:
        """Start a task that runs until it is stopped, and return its id."""
        purpose = TaskOwner(user.id, chat_id, message_id)
        return self.tasks.spawn("answer", asyncio.Event().wait(), purpose)  # type: ignore[arg-type]

    async def heard(self, user_id: str, count: int = 1) -> None:
        """Wait until so many listen for a user."""
        while len(self.hub.listeners(user_id)) != count:
            await asyncio.sleep(0.005)

    async def emit(self, user: User, kind: str, data: Any, chat_id: str = "c1") -> None:
        await self.events.emit(EventTarget(user.id, chat_id, "m1"), {"type": kind, "data": data})

    def ask(self, user: User, kind: str, data: Any, chat_id: str = "c1") -> "asyncio.Future[Any]":
        """Call a user and return what will hold the answer."""
        return asyncio.ensure_future(
            self.events.call(EventTarget(user.id, chat_id, "m1"), {"type": kind, "data": data})
        )

    async def close(self) -> None:
        self.hub.close()
        await self.tasks.close()
