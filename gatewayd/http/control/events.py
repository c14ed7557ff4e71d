"""Routes of `/v1/events`: the event stream, and calls that wait for an answer."""

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import orjson
from aiohttp import web

from gatewayctl.wire import events as wire
from gatewayctl.wire import routes
from gatewayd.errors import invalid, not_found
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import EVERYBODY, Hub
from gatewayd.events.records import EventCall
from gatewayd.events.rooms import Subscription
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.rows import serve
from gatewayd.http.control.tasks import ChatOwners
from gatewayd.http.control.transactions import audit, control_reply, is_set, timestamp
from gatewayd.http.responses.sse import relay
from gatewayd.http.routes import Route
from gatewayd.json_decoder import LARGE_LIMITS

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024


class ControlEventRoutes:
    """Routes of events and calls on the control socket."""

    def __init__(self, hub: Hub, calls: EventCalls, chats: ChatOwners, principals: GranteeFinder) -> None:
        self._hub = hub
        self._calls = calls
        self._chats = chats
        self._principals = principals

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.FOLLOW_EVENTS, self.stream),
            serve(routes.LIST_CALLS, self.list),
            serve(routes.ANSWER_CALL, self.answer),
        ]

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Answer an event stream until the client leaves: `EventSession`, then an `Envelope` for each event.

        `?user=` selects the events of a user and counts as a live connection of that user. `?chat=` selects
        one chat, and without `?user=` its owner. `?everybody=true` selects the events of all users and counts
        as no user's connection. `?since=` is the id after which the stream resumes.
        """
        user_id = await self._user_id_of(request)
        listener = self._hub.subscribe(
            user_id, last_id=request.query.get("since") or None, chat_id=request.query.get("chat")
        )
        with closing(listener):
            return await relay(request, await self._session(listener), listener.next)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `CallList`; `?user=` limits it to the calls that wait for one user."""
        ref = request.query.get("user")
        if ref is None:
            found = self._calls.every()
        else:
            found = self._calls.pending((await self._principals.owner(ref)).id)
        emails = await self._principals.emails(call.target.user_id for call in found)
        return control_reply(
            wire.CallList(calls=[_call(call, emails[call.target.user_id]) for call in found])
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """`CallAnswer` -> `Call`; conflict for an answered call, not_found for an unknown one."""
        wanted = await read_model(request, wire.CallAnswer, MAX_ANSWER_BYTES, LARGE_LIMITS)
        if ("result" in wanted.model_fields_set) == (wanted.error is not None):
            raise invalid("cannot accept the answer: send either result or error", param="result")
        call_id = request.match_info["id"]
        user_id = self._calls.find_user(call_id)
        if user_id is None:
            raise not_found("call", call_id)
        waiting = {call.id: call for call in self._calls.pending(user_id)}
        if wanted.error is not None:
            await self._calls.refuse(user_id, call_id, wanted.error)
        else:
            await self._calls.answer(user_id, call_id, wanted.result)
        audit(request, "call answer", call_id)
        emails = await self._principals.emails([user_id])
        return control_reply(_call(waiting[call_id], emails[user_id]))

    async def _user_id_of(self, request: web.Request) -> str:
        ref, chat_id = request.query.get("user"), request.query.get("chat")
        if is_set(request, "everybody"):
            return EVERYBODY
        if ref is not None:
            return (await self._principals.owner(ref)).id
        if chat_id is None:
            raise invalid("cannot choose events: name a user, a chat or everybody", param="user")
        owner_id = await self._chats.find_owner(chat_id)
        if owner_id is None:
            raise not_found("chat", chat_id)
        return owner_id

    async def _session(self, listener: Subscription) -> bytes:
        opened = listener.opened
        emails = await self._principals.emails([opened.user_id])
        session = wire.EventSession(user_id=opened.user_id, user=emails[opened.user_id], gap=opened.gap)
        head = f"id: {listener.position}\nevent: session\n".encode()
        return b"%bdata: %b\n\n" % (head, orjson.dumps(session.model_dump()))


def _call(call: EventCall, email: str) -> wire.Call:
    return wire.Call(
        id=call.id,
        user_id=call.target.user_id,
        user=email,
        chat_id=call.target.chat_id,
        message_id=call.target.message_id,
        type=call.event.type,
        data=call.event.data,
        created_at=timestamp(call.created_at),
    )
