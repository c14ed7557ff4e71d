"""The routes of events, stored chats, tasks and plugins."""

from collections.abc import Sequence

from gatewayd.assembly.accounts import AccountServices
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.plugins import ExtensionServices
from gatewayd.assembly.runs import AnswerServices
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.events import ControlEventRoutes
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.stored_chats import ControlStoredChatRoutes
from gatewayd.http.control.tasks import ControlTaskRoutes
from gatewayd.http.public.chats.branches import ChatBranchRoutes
from gatewayd.http.public.chats.folders import FolderRoutes
from gatewayd.http.public.chats.lists import ChatListRoutes
from gatewayd.http.public.chats.routes import StoredChatRoutes
from gatewayd.http.public.completions.outlets import CompletedRoutes
from gatewayd.http.public.completions.tasks import TaskRoutes
from gatewayd.http.public.events import EventRoutes
from gatewayd.http.routes import Route


def public_live_rows(
    live: LiveServices,
    events: EventRoutes,
    extensions: ExtensionServices,
    answering: AnswerServices,
    *,
    body_limit: int,
) -> Sequence[Route]:
    """Return the rows of events, outlet filters, actions, tasks and stored chats."""
    stopping, models, runs = answering.stopping, answering.models, answering.runs
    return [
        *CompletedRoutes(extensions.outlets, extensions.actions, body_limit=body_limit).routes(),
        *TaskRoutes(stopping, models, runs, body_limit=body_limit).routes(),
        *events.routes(),
        # Before those with an id in the same place.
        *ChatListRoutes(live.chats).routes(),
        *FolderRoutes(live.chats, live.events.emit).routes(),
        *StoredChatRoutes(live.chats, live.events.emit).routes(),
        *ChatBranchRoutes(live.chats, live.events.still, live.events.emit).routes(),
    ]


def control_live_rows(
    live: LiveServices, answering: AnswerServices, accounts: AccountServices, viewers: ControlActors
) -> Sequence[Route]:
    """Return the rows of the nouns chat, task and event of the control socket."""
    principals, chats = GranteeFinder(accounts.users, accounts.groups), live.chats.chats
    return [
        *ControlStoredChatRoutes(live.chats, principals, viewers, live.events.emit).routes(),
        *ControlTaskRoutes(answering.stopping, chats, principals, viewers).routes(),
        *ControlEventRoutes(live.hub, live.calls, chats, principals).routes(),
    ]
