"""Routes of `/v1/chats`: lists, display, export, import and removal of stored chats."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import stored_chats as wire
from gatewayctl.wire.base import Outcome
from gatewayd import json_encoder
from gatewayd.accounts.records import Actor
from gatewayd.chats.records import Chat
from gatewayd.chats.search_query import read_search
from gatewayd.chats.service import Record
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.chats.transfer import MAX_IMPORTED_CHATS
from gatewayd.completions.records import DONE
from gatewayd.errors import GatewayError
from gatewayd.http.body import read_members, read_model
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, find_page, is_set, timestamp
from gatewayd.http.errors import body_of, log_broken
from gatewayd.http.public.chats.routes import Notify, announce_chats
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import Route, RouteDialect
from gatewayd.json_decoder import CHAT_LIMITS, UndecodedMember

MAX_IMPORT_BYTES: Final = 64 * 1024 * 1024
IMPORTED: Final = UndecodedMember("chats", MAX_IMPORTED_CHATS)


class ControlStoredChatRoutes:
    """Routes of stored chats on the control socket. `notify` tells the owners of changed chats."""

    def __init__(
        self, services: ChatServices, principals: GranteeFinder, viewers: ControlActors, notify: Notify
    ) -> None:
        self._notify = notify
        self._chats = services.chats
        self._transfer = services.transfer
        self._principals = principals
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_CHATS, self.list),
            serve(routes.EXPORT_CHATS, self.give, interruptible=True),
            serve(routes.IMPORT_CHATS, self.take),
            serve(routes.GET_CHAT, self.show),
            serve(routes.REMOVE_CHAT, self.remove),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `StoredChatList`, a page of at most 1000.

        `?user=` limits it to the chats of one user, `?archived=true` to archived ones, which are omitted
        otherwise. `?query=` is searched in titles and messages, and may contain filters such as `tag:NAME`.
        """
        ref = request.query.get("user")
        query = read_search(request.query.get("query", ""))
        if is_set(request, "archived"):
            query = replace(query, archived=True)
        if ref is not None:
            query = replace(query, user_id=(await self._principals.owner(ref)).id)
        offset, limit = find_page(request)
        query = replace(query, offset=offset, limit=limit)
        found, total = await self._chats.find_all(self._operator(request), query)
        emails = await self._principals.emails(chat.user_id for chat in found)
        shown = [_chat(chat, emails[chat.user_id]) for chat in found]
        return control_reply(wire.StoredChatList(chats=shown, total=total))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `StoredChatDetail`: the current branch, or every message with `?tree=true`."""
        actor, chat_id = self._operator(request), request.match_info["id"]
        is_whole = is_set(request, "tree")
        chat = await self._chats.owned(actor, chat_id)
        document = (await self._chats.get(actor, chat_id))["chat"]
        branch = document["messages"]
        current = {node["id"] for node in branch}
        nodes = sort_history(document["history"]["messages"]) if is_whole else branch
        head = (await self._render(chat)).model_dump()
        return control_reply(
            wire.StoredChatDetail(
                **head,
                current_id=document["history"]["currentId"],
                messages=[message_of(node, is_current=node["id"] in current) for node in nodes],
            )
        )

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Take `ChatExport`, answer a stream of whole chats that ends with `[DONE]`."""
        wanted = await read_model(request, wire.ChatExport)
        records = await self._wanted(wanted, self._operator(request))
        reply = await open_stream(request, {})
        try:
            async for record in records:
                await send_frames(request, reply, b"data: ")
                for part in await json_encoder.encode(record):
                    await send_frames(request, reply, part)
                await send_frames(request, reply, b"\n\n")
        except GatewayError as error:
            log_broken(request, error)
            await send_frames(
                request, reply, b"data: %b\n\n" % orjson.dumps(body_of(error, RouteDialect.CONTROL))
            )
        else:
            await send_frames(request, reply, DONE)
        await reply.write_eof()
        return reply

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Take `ChatImport`, answer `ChatsImported`; all chats are stored, or none."""
        wanted, members = await read_members(
            request, wire.ChatImport, MAX_IMPORT_BYTES, IMPORTED, CHAT_LIMITS
        )
        owner = await self._principals.owner(wanted.user)
        dry_run = is_set(request, "dry_run")
        if dry_run:
            made = await self._transfer.check(self._operator(request), members, owner.id)
        else:
            # A transaction block would hold one transaction during the whole import.
            made = await self._transfer.take(self._operator(request), members, owner.id)
            audit(request, "chat import", owner.email)
            await announce_chats(self._notify, owner.id)
        chats = [_chat(chat, owner.email) for chat in made]
        return control_reply(wire.ChatsImported(chats=chats, outcome=Outcome.CREATED, dry_run=dry_run))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `StoredChatWritten` with the chat before its removal."""
        actor, chat_id = self._operator(request), request.match_info["id"]
        dry_run = is_set(request, "dry_run")
        chat = await self._chats.owned(actor, chat_id)
        shown = await self._render(chat)
        if not dry_run:
            # Not in a transaction block: the stop of the chat's tasks cannot be rolled back.
            await self._chats.remove(actor, chat_id)
            audit(request, "chat remove", chat_id)
            await announce_chats(self._notify, chat.user_id, chat.id, chat.folder_id)
        return control_reply(
            wire.StoredChatWritten(**shown.model_dump(), outcome=Outcome.REMOVED, dry_run=dry_run)
        )

    async def _wanted(self, wanted: wire.ChatExport, actor: Actor) -> AsyncIterator[Record]:
        if wanted.id is not None:
            return _alone(await self._transfer.give(actor, wanted.id))
        owner_id = None if wanted.user is None else (await self._principals.owner(wanted.user)).id
        return await self._transfer.give_everything(actor, owner_id)

    async def _render(self, chat: Chat) -> wire.StoredChat:
        return _chat(chat, (await self._principals.emails([chat.user_id]))[chat.user_id])

    def _operator(self, request: web.Request) -> Actor:
        return self._viewers.operator(request[PEER])


def sort_history(nodes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages of a history in depth-first order, each after its parent."""
    ordered = []
    waiting = [node for node in nodes.values() if node["parentId"] is None][::-1]
    while waiting:
        node = waiting.pop()
        ordered.append(node)
        waiting.extend(nodes[child] for child in reversed(node["childrenIds"]))
    return ordered


def message_of(node: Mapping[str, Any], *, is_current: bool) -> wire.StoredMessage:
    """Return a message of a chat's record as its wire model."""
    model = node.get("model")
    return wire.StoredMessage(
        id=node["id"],
        parent_id=node["parentId"],
        role=node["role"],
        content=_text(node["content"]),
        model=model if isinstance(model, str) else None,
        done=node.get("done"),
        current=is_current,
        error=_failure(node.get("error")),
        status=node.get("statusHistory", []),
        sources=node.get("sources", []),
        files=node.get("files", []),
        embeds=node.get("embeds", []),
        created_at=timestamp(node["timestamp"]),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def _failure(error: Any) -> str | None:
    """Return the reason of a failed message; clients store `{"content"}`, a text or true."""
    if not error:
        return None
    text = error.get("content") if isinstance(error, Mapping) else error
    return text if isinstance(text, str) else "failed"


async def _alone(record: Record) -> AsyncIterator[Record]:
    yield record


def _chat(chat: Chat, email: str) -> wire.StoredChat:
    return wire.StoredChat(
        id=chat.id,
        title=chat.title,
        user_id=chat.user_id,
        user=email,
        archived=chat.archived,
        pinned=chat.pinned,
        tags=list(chat.tags),
        updated_at=timestamp(chat.updated_at),
        created_at=timestamp(chat.created_at),
    )
