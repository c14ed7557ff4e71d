"""The services and routes of stored chats over the fakes in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from gatewayd.accounts.records import User
from gatewayd.chats.branches import ChatBranches
from gatewayd.chats.folder_paths import FolderPaths
from gatewayd.chats.folders import ChatFolders
from gatewayd.chats.overview import ChatOverview
from gatewayd.chats.service import Chats
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.chats.shares import ChatSharing
from gatewayd.chats.tags import ChatTags
from gatewayd.chats.transfer import ChatTransfer
from gatewayd.events.records import EventTarget
from gatewayd.http.public.chats.branches import ChatBranchRoutes
from gatewayd.http.public.chats.folders import FolderRoutes
from gatewayd.http.public.chats.lists import ChatListRoutes
from gatewayd.http.public.chats.routes import StoredChatRoutes
from gatewayd.http.routes import Route
from gatewayd.nodes.messages import NoChannel, NodeMessages
from gatewayd.nodes.tasks import ChatTasks
from gatewayd.tasks import TaskRegistry
from tests.fakes.accounts.services import Accounts, Site, serving_accounts
from tests.fakes.storage.memory_chats import (
    ChatState,
    MemoryChats,
    MemoryFolders,
    MemoryMessages,
    MemoryMessageSearch,
)

CHATS = "/api/v1/chats"


@dataclass
class ChatHouse:
    """The services over one state; `told` is what listeners were told."""

    accounts: Accounts = field(default_factory=Accounts)
    admin_access: bool = True

    def __post_init__(self) -> None:
        self.state = ChatState()
        self.store = MemoryChats(self.state)
        self.messages = MemoryMessages(self.state)
        self.tasks = TaskRegistry()
        self.texts: dict[str, str] = {}
        self.told: list[tuple[EventTarget, Any]] = []
        commits, clock = self.accounts.commits, self.accounts.clock
        self.chats = Chats(
            self.store,
            self.messages,
            commits,
            clock,
            admin_access=self.admin_access,
            tasks=ChatTasks(self.tasks, NodeMessages(NoChannel(), self.tasks)),
        )
        self.tags = ChatTags(self.store, self.chats.access)
        self.sharing = ChatSharing(self.chats, self.store, clock)
        folders = MemoryFolders(self.state)
        self.transfer = ChatTransfer(self.chats, self.store, FolderPaths(folders, commits, clock), clock)
        branches = ChatBranches(self.store, self.messages, self.chats.access, commits, clock)
        self.folders = ChatFolders(folders, self.chats, self.store, commits, clock)
        overview = ChatOverview(self.chats, MemoryMessageSearch(self.state))
        self.services = ChatServices(
            self.chats, self.tags, self.sharing, self.transfer, branches, self.folders, overview
        )

    async def notify(self, target: EventTarget, event: Any) -> bool:
        self.told.append((target, event))
        return True

    @asynccontextmanager
    async def still(self, *_: Any) -> AsyncIterator[tuple[str, dict[str, str]]]:
        yield "b00t-7", self.texts

    def rows(self) -> list[Route]:
        stored = StoredChatRoutes(self.services, self.notify).routes()
        branches = ChatBranchRoutes(self.services, self.still, self.notify).routes()
        folders = FolderRoutes(self.services, self.notify).routes()
        return [*ChatListRoutes(self.services).routes(), *folders, *stored, *branches]


@dataclass
class ChatSite:
    """A served application with an administrator, a user and another one."""

    house: ChatHouse
    site: Site
    other: User

    @property
    def user(self) -> User:
        return self.site.user

    @property
    def admin(self) -> User:
        return self.site.admin

    async def call(self, method: str, path: str, who: User | None = None, body: Any = None) -> Any:
        return await self.site.call(method, f"{CHATS}{path}", who or self.user, body)

    async def ok(self, method: str, path: str, who: User | None = None, body: Any = None) -> Any:
        status, answer = await self.call(method, path, who, body)
        assert status == 200, answer
        return answer

    async def chat(self, title: str = "Birds", who: User | None = None, **more: Any) -> Any:
        """Make a chat of one question and one answer, and return its record."""
        return await self.ok("POST", "/new", who, {"chat": document(title, **more)})


def node(message_id: str, parent_id: str | None, role: str = "user", **more: Any) -> dict[str, Any]:
    """Return a message as clients send it."""
    return {"id": message_id, "parentId": parent_id, "childrenIds": [], "role": role, "content": "", **more}


def document(title: str = "Birds", **more: Any) -> dict[str, Any]:
    """Return a `chat` object of one question and one answer."""
    messages = {
        "q1": node("q1", None, content="What stands in the water?", timestamp=5),
        "a1": node("a1", "q1", "assistant", content="A heron.", model="m", done=True, timestamp=6),
    }
    return {
        "title": title,
        "models": ["m"],
        "history": {"messages": messages, "currentId": "a1"},
        **more,
    }


@asynccontextmanager
async def serving_chats(*, admin_access: bool = True) -> AsyncIterator[ChatSite]:
    house = ChatHouse(admin_access=admin_access)
    async with serving_accounts(house.accounts, house.rows()) as site:
        yield ChatSite(house, site, await house.accounts.add_user("other"))
    await house.tasks.close()
