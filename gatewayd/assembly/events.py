"""Events and stored chats over the account services."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from gatewayd.assembly.accounts import Accounts
from gatewayd.bus.memory import MemoryBus
from gatewayd.chats.edits import EditedChats, EditedMessages
from gatewayd.chats.interfaces import MessageStore
from gatewayd.chats.run_writer import Answers
from gatewayd.chats.service import Chats
from gatewayd.chats.services import ChatServices
from gatewayd.chats.shares import Sharing
from gatewayd.chats.tags import ChatTags
from gatewayd.chats.transfer import Transfer
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.events.calls import Calls
from gatewayd.events.hub import Hub
from gatewayd.events.rooms import Limits
from gatewayd.events.service import Events
from gatewayd.events.tickets import Tickets
from gatewayd.settings import Settings
from gatewayd.storage.chats import ChatRows
from gatewayd.storage.message_events import EffectRows
from gatewayd.storage.messages import MessageRows
from gatewayd.tasks import Tasks


@dataclass(frozen=True, slots=True)
class ChatStores:
    """The stores of chats over one open database; `chats` and `rows` are as runs write them."""

    chats: ChatRows
    messages: MessageStore
    effects: EffectRows
    rows: MessageRows


@dataclass(frozen=True, slots=True)
class Live:
    """Events, and the chats that they write to."""

    stores: ChatStores
    hub: Hub
    calls: Calls
    tickets: Tickets
    events: Events
    chats: ChatServices
    answers: Answers
    deferred: DeferredWrites


async def open_live(settings: Settings, accounts: Accounts, tasks: Tasks, stack: AsyncExitStack) -> Live:
    """Return the services; messages that were being written when the daemon died are done from now on."""
    rows, deferred = MessageRows(), DeferredWrites(tasks)
    stores = ChatStores(ChatRows(), EditedMessages(rows, deferred), EffectRows(), rows)
    hub = Hub(MemoryBus(), event_limits(settings))
    stack.callback(hub.close)
    calls = Calls(hub, timeout=settings.websocket_event_caller_timeout)
    answers = Answers(rows, stores.chats, accounts.commits)
    await answers.end_running()
    # No reader finds them, so the start does not wait for their removal.
    unfinished = await stores.chats.list_unfinished()
    tasks.spawn("removal of unfinished chats", stores.chats.purge(unfinished))
    tasks.spawn("keep-alive of event streams", hub.run())
    return Live(
        stores=stores,
        hub=hub,
        calls=calls,
        tickets=Tickets(),
        events=Events(stores.effects, hub, calls, deferred),
        chats=make_chats(settings, accounts, stores, deferred, tasks),
        answers=answers,
        deferred=deferred,
    )


def event_limits(settings: Settings) -> Limits:
    """Return what is kept of events and what may wait."""
    return Limits(
        queue_frames=settings.event_queue_frames,
        replay_frames=settings.event_replay_frames,
    )


def make_chats(
    settings: Settings, accounts: Accounts, stores: ChatStores, deferred: DeferredWrites, tasks: Tasks
) -> ChatServices:
    """Return the services of stored chats."""
    edited = EditedChats(stores.chats, deferred)
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
        sharing=Sharing(chats, edited),
        transfer=Transfer(chats, edited),
    )
