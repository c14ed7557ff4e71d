"""Events and stored chats over the account services."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from gatewayd.assembly.accounts import AccountServices
from gatewayd.assembly.upkeep.live_bus import open_bus
from gatewayd.chats.branches import ChatBranches
from gatewayd.chats.edits import EditedChats, EditedMessages
from gatewayd.chats.folder_paths import FolderPaths
from gatewayd.chats.folders import ChatFolders
from gatewayd.chats.interfaces import MessageStore
from gatewayd.chats.overview import ChatOverview
from gatewayd.chats.run_writer import RunMessageWriter
from gatewayd.chats.service import Chats
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.chats.shares import ChatSharing
from gatewayd.chats.tags import ChatTags
from gatewayd.chats.transfer import ChatTransfer
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import Hub
from gatewayd.events.interfaces import TicketDesk
from gatewayd.events.rooms import EventLimits
from gatewayd.events.service import EventService
from gatewayd.nodes.messages import NodeMessages
from gatewayd.nodes.tasks import ChatTasks
from gatewayd.settings import Settings
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.message_events import TortoiseMessageEvents
from gatewayd.storage.message_search import TortoiseMessageSearch
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.tasks import TaskRegistry


@dataclass(frozen=True, slots=True)
class ChatStores:
    """The stores of chats over one open database. Runs write through `chats` and `rows`."""

    chats: TortoiseChats
    messages: MessageStore
    effects: TortoiseMessageEvents
    rows: TortoiseMessages


@dataclass(frozen=True, slots=True)
class LiveServices:
    """Events and stored chats."""

    stores: ChatStores
    hub: Hub
    calls: EventCalls
    tickets: TicketDesk
    events: EventService
    chats: ChatServices
    answers: RunMessageWriter
    messages: NodeMessages
    deferred: DeferredWrites


async def open_live(
    settings: Settings,
    accounts: AccountServices,
    tasks: TaskRegistry,
    stack: AsyncExitStack,
    *,
    is_node: bool = False,
) -> LiveServices:
    """Return the services. Unless this is a node, mark messages done that a killed daemon left unfinished."""
    rows, deferred = TortoiseMessages(), DeferredWrites(tasks)
    stores = ChatStores(TortoiseChats(), EditedMessages(rows, deferred), TortoiseMessageEvents(), rows)
    limits = event_limits(settings)
    bus, tickets, messages = await open_bus(settings, limits, tasks, stack)
    hub = Hub(bus, limits)
    stack.callback(hub.close)
    calls = EventCalls(hub, timeout=settings.websocket_event_caller_timeout, messages=messages)
    answers = RunMessageWriter(rows, stores.chats, accounts.commits)
    if not is_node:
        await answers.end_running()
        # No reader finds them, so the start does not wait for their removal.
        unfinished = await stores.chats.list_unfinished()
        tasks.spawn("removal of unfinished chats", stores.chats.purge(unfinished))
    tasks.spawn("keep-alive of event streams", hub.run())
    return LiveServices(
        stores=stores,
        hub=hub,
        calls=calls,
        tickets=tickets,
        events=EventService(stores.effects, hub, calls, deferred),
        chats=make_chats(settings, accounts, stores, deferred, ChatTasks(tasks, messages)),
        answers=answers,
        messages=messages,
        deferred=deferred,
    )


def event_limits(settings: Settings) -> EventLimits:
    """Return the limits of replay buffers and subscriber queues."""
    return EventLimits(
        queue_frames=settings.event_queue_frames,
        replay_frames=settings.event_replay_frames,
    )


def make_chats(
    settings: Settings,
    accounts: AccountServices,
    stores: ChatStores,
    deferred: DeferredWrites,
    tasks: ChatTasks,
) -> ChatServices:
    """Return the services of stored chats."""
    edited, folders = EditedChats(stores.chats, deferred), TortoiseFolders()
    chats = Chats(
        edited,
        stores.messages,
        accounts.commits,
        admin_access=settings.enable_admin_chat_access,
        tasks=tasks,
    )
    return ChatServices(
        chats=chats,
        tags=ChatTags(edited, chats.access),
        sharing=ChatSharing(chats, edited),
        transfer=ChatTransfer(chats, edited, FolderPaths(folders, accounts.commits)),
        branches=ChatBranches(edited, stores.messages, chats.access, accounts.commits),
        folders=ChatFolders(folders, chats, edited, accounts.commits),
        overview=ChatOverview(chats, TortoiseMessageSearch()),
    )
