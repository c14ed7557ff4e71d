"""Routes of the event stream, answers to calls, and events from external tools."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import Actor
from gatewayd.chats.records import Chat
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.events.calls import EventCalls
from gatewayd.events.event_types import external_names
from gatewayd.events.hub import Hub
from gatewayd.events.interfaces import TicketDesk
from gatewayd.events.records import EventCall, EventTarget
from gatewayd.events.rooms import Subscription
from gatewayd.events.service import EventService
from gatewayd.events.shown_calls import payload_of
from gatewayd.events.tickets import LIFE_SECONDS
from gatewayd.http.body import RequestBody, json_reply, read_model, read_object
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, credential, request_id
from gatewayd.http.public.accounts.session_replies import NO_STORE
from gatewayd.http.reply_schemas import chats
from gatewayd.http.responses.sse import relay
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import EVENT_STREAM, TRUE, answers
from gatewayd.json_decoder import LARGE_LIMITS

RETRY_MS: Final = 1000
"""Milliseconds before a browser reconnects, less than the timeout of a call."""

LAST_EVENT_ID: Final = "Last-Event-ID"

STREAM_QUERY: Final = {
    "chat_id": "Id of the one chat to listen to.",
    "last_event_id": "Id of the last event received, as the header Last-Event-ID has it.",
    "ticket": "Ticket of POST /api/v1/events/ticket, in place of a credential.",
}

EVENTS: Final = RouteGroup("/api/v1/events", "events")
MESSAGES: Final = RouteGroup("/api/v1/chats/{chat_id}/messages/{message_id}", "events")


class ChatOwnership(Protocol):
    """Checks the owners of chats."""

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat that the actor may write to, as its owner or an administrator; raises otherwise."""
        ...


class EventBody(RequestBody):
    """An event of an external tool (gatewayd-plugins(7), EVENTS)."""

    type: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventServices:
    """The services that the routes call."""

    events: EventService
    hub: Hub
    calls: EventCalls
    tickets: TicketDesk
    chats: ChatOwnership


class EventRoutes:
    """Routes of event streams, calls and events from external tools.

    The assembly subscribes `on_change` to account changes. Without `has_external_tools` no events are
    accepted, as tools do not get the headers with chat and message (gatewayd-plugins(7), EXTERNAL TOOLS).
    """

    def __init__(self, services: EventServices, *, body_limit: int, has_external_tools: bool = True) -> None:
        self._events = services.events
        self._hub = services.hub
        self._calls = services.calls
        self._tickets = services.tickets
        self._chats = services.chats
        self._body_limit = body_limit
        self._has_external_tools = has_external_tools

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        verified = RouteAccess.VERIFIED
        return [
            Route(
                "GET",
                EVENTS.prefix,
                self.stream,
                verified,
                "Subscribe to events",
                tag=EVENTS.tag,
                tickets=True,
                use=RequestUse.LISTENER,
            ),
            EVENTS.row(
                "POST", "/ticket", self.ticket, verified, "Create a ticket for the event stream", asks=True
            ),
            EVENTS.row("GET", "/calls", self.list, verified, "List the calls that wait for an answer"),
            EVENTS.row("POST", "/calls/{id}", self.answer, verified, "Answer a call", asks=True),
            MESSAGES.row("POST", "/event", self.emit, verified, "Emit an event", EventBody, asks=True),
        ]

    def on_change(self, change: AccountChange) -> None:
        """Close the streams of an account whose rights may have changed; permitted clients reconnect.

        The rights of a key also depend on settings, permissions and groups.
        """
        self._hub.disconnect(change.user_id, only_keys=not (change.is_out or change.asks_again))

    @answers(None, EVENT_STREAM, query=STREAM_QUERY)
    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Answer an event stream: `event: session`, then a frame for each event, until the client leaves.

        The first frame is `{"session_id", "user_id", "resume_from", "gap"}`. Further ones are `{"chat_id",
        "message_id", "data": {"type", "data"}}` with an id, calls with a `call_id` and without an id.
        `?chat_id=` selects one chat. The stream resumes after Last-Event-ID, or `?last_event_id=`.
        """
        caller = actor(request)
        if request.method == "HEAD":
            return web.Response(content_type="text/event-stream")
        last_id = request.headers.get(LAST_EVENT_ID) or request.query.get("last_event_id") or None
        chat_id = request.query.get("chat_id") or None
        listener = await self._hub.resume(caller.user_id, last_id=last_id, chat_id=chat_id)
        listener.until, listener.has_key = caller.expires_at, caller.key_id is not None
        with closing(listener):
            return await relay(request, session_frame(listener), listener.next)

    @answers(chats.ticket)
    async def ticket(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"ticket", "expires_in"}`: `GET /api/v1/events?ticket=` accepts it once, within 30 s."""
        ticket = await self._tickets.issue(credential(request))
        return json_reply({"ticket": ticket, "expires_in": LIFE_SECONDS}, headers=NO_STORE)

    @answers(chats.calls)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"calls": [{"call_id", "chat_id", "message_id", "data", "created_at"}], "total"}`."""
        calls = self._calls.pending(actor(request).user_id)
        return json_reply({"calls": [_render(call) for call in calls], "total": len(calls)})

    @answers(TRUE)
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """`{"result": any}` or `{"error": "..."}` -> true; 409 for an answered call, 404 for an unknown
        one, 503 if the node of the call does not reply: the answer may count."""
        body = await read_object(request, self._body_limit, LARGE_LIMITS)
        user_id, call_id = actor(request).user_id, request.match_info["id"]
        if ("result" in body) == ("error" in body):
            raise invalid("cannot accept the answer: send either result or error", param="result")
        if "result" in body:
            await self._calls.answer(user_id, call_id, body["result"])
            return json_reply(data=True)
        if not isinstance(body["error"], str):
            raise invalid("cannot accept error: expected a string", param="error")
        await self._calls.refuse(user_id, call_id, body["error"])
        return json_reply(data=True)

    @answers(TRUE)
    async def emit(self, request: web.Request) -> web.StreamResponse:
        """`{"type": str, "data": object}` -> true (gatewayd-plugins(7), EVENTS).

        503 with Retry-After while the message cannot be written; nothing is stored or delivered then. 403
        while the headers for external tools are off, 422 for a malformed event, 400 for a type that tools may
        not send and for a payload that does not match the type.
        """
        if not self._has_external_tools:
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                "cannot emit an event: external tools are off (setting ENABLE_FORWARD_USER_INFO_HEADERS)",
                code="external_events_disabled",
            )
        chat = await self._chats.owned(actor(request), request.match_info["chat_id"])
        event = await read_model(request, EventBody, self._body_limit, LARGE_LIMITS)
        name, data = event.type, event.data
        if not self._events.is_allowed_outside(name):
            known = ", ".join(external_names())
            raise invalid(
                f"cannot accept an event of type {shorten(name)!r} from outside: only {known}", param="type"
            )
        fault = self._events.find_fault(name, data)
        if fault is not None:
            raise invalid(f"cannot accept {fault.field}: expected {fault.expected}", param=fault.field)
        message_id = request.match_info["message_id"]
        target = EventTarget(chat.user_id, chat.id, message_id, request_id=request_id(request))
        await self._events.accept(target, {"type": name, "data": data})
        return json_reply(data=True)


def session_frame(listener: Subscription) -> bytes:
    """Return the first frame of a stream; its id is the position to resume from without further events."""
    opened = listener.opened
    data = {
        "session_id": opened.session_id,
        "user_id": opened.user_id,
        "resume_from": opened.resume_from,
        "gap": opened.gap,
    }
    head = f"retry: {RETRY_MS}\nid: {listener.position}\nevent: session\n"
    return b"%bdata: %b\n\n" % (head.encode(), orjson.dumps(data))


def _render(call: EventCall) -> dict[str, Any]:
    return {**payload_of(call), "created_at": call.created_at}
