"""Management of tool servers by administrators, and access of actors to them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from gatewayd import ids
from gatewayd.accounts.permissions import is_exempt
from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import is_for
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.plugins.access import check_admin
from gatewayd.plugins.servers.config import MASK, ConfiguredServers, check_server
from gatewayd.plugins.servers.records import ServerOrigin, ToolServer, ToolServerStore
from gatewayd.urls import split_url

log = logging.getLogger(__name__)

CHANGE_LOCK: Final = "tool servers"
"""Name of the lock that serialises changes of tool servers across processes."""


@dataclass(frozen=True, slots=True)
class VisibleServer:
    """Description of a server: its title and version, and the specifications of its functions."""

    title: str = ""
    version: str = ""
    specs: Sequence[dict[str, Any]] = field(default_factory=tuple)


class ServerChecker(Protocol):
    """Fetcher of the descriptions of servers."""

    async def check(self, server: ToolServer, actor: Actor) -> VisibleServer:
        """Fetch the description without a cache; raises GatewayError that names the server."""
        ...


class KnownServers:
    """The servers of the settings and of the database; for equal ids the settings take precedence."""

    def __init__(
        self,
        store: ToolServerStore,
        configured: ConfiguredServers | None = None,
        *,
        bypass_admins: bool = True,
    ) -> None:
        configured = configured or ConfiguredServers()
        self._store = store
        self._configured = {server.id: server for server in configured.servers}
        self._bypass_admins = bypass_admins
        self.problems = configured.problems
        for problem in configured.problems:
            log.warning(problem)

    async def list(self) -> Sequence[ToolServer]:
        """Return all servers, sorted by id."""
        stored = {server.id: server for server in await self._store.list()}
        known = {**stored, **self._configured}
        return [known[server_id] for server_id in sorted(known)]

    async def find(self, server_id: str) -> ToolServer | None:
        """Return one server; None when absent."""
        return self._configured.get(server_id) or await self._store.find(server_id)

    def is_configured(self, server_id: str) -> bool:
        """Whether a server comes from the settings."""
        return server_id in self._configured

    async def usable(self, actor: Actor) -> Sequence[ToolServer]:
        """Return the active servers that an actor may use, sorted by id."""
        return [server for server in await self.list() if server.is_active and self.may_use(actor, server)]

    def may_use(self, actor: Actor, server: ToolServer) -> bool:
        """Whether an actor may use a server, by its access list or as an administrator."""
        if is_exempt(actor, bypass_admins=self._bypass_admins):
            return True
        return any(is_for(grant, actor) for grant in server.grants)


class ToolServers:
    """Manages the tool servers of the database; servers of the settings are read-only.

    Every method raises forbidden for an actor that is not an administrator. `changing` returns the block
    around reading a server and committing its change.
    """

    def __init__(
        self,
        known: KnownServers,
        store: ToolServerStore,
        checker: ServerChecker,
        clock: ids.Clock = ids.now,
        changing: Callable[[], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        self._store = store
        self._checker = checker
        self._clock = clock
        self._lock = asyncio.Lock()
        self._changing = changing or (lambda: self._lock)
        self.known = known

    async def list(self, actor: Actor) -> Sequence[ToolServer]:
        """Return all servers, sorted by id."""
        check_admin(actor)
        return await self.known.list()

    async def get(self, actor: Actor, server_id: str) -> ToolServer:
        """Return one server; not_found when absent."""
        check_admin(actor)
        server = await self.known.find(server_id)
        if server is None:
            raise not_found("tool server", server_id)
        return server

    async def create(self, actor: Actor, server: ToolServer) -> ToolServer:
        """Store a new server; conflict for an id that is taken."""
        check_admin(actor)
        async with self._changing():
            if await self.known.find(server.id) is not None:
                message = f"cannot create tool server {server.id!r}: the id is taken"
                raise GatewayError(ErrorKind.CONFLICT, message, param="info.id")
            return await self._put(actor, server, None)

    async def change(self, actor: Actor, server: ToolServer) -> ToolServer:
        """Replace the server with this id; MASK keeps the stored key or header value."""
        async with self._changing():
            held = await self._changeable(actor, server.id)
            return await self._put(actor, restore_secrets(server, held), held)

    async def remove(self, actor: Actor, server_id: str) -> None:
        """Remove a server; not_found when absent, conflict for a server of the settings."""
        async with self._changing():
            await self._changeable(actor, server_id)
            await self._store.remove(server_id)
        log.info("tool server removed", extra={"tool_server": server_id, "by": actor.user_id})

    async def replace_all(self, actor: Actor, servers: Sequence[ToolServer]) -> Sequence[ToolServer]:
        """Replace the servers of the database; servers of the settings may be included unchanged."""
        check_admin(actor)
        async with self._changing():
            held = {server.id: server for server in await self.known.list()}
            wanted = _by_id(servers)
            kept = {
                name: restore_secrets(one, held[name]) if name in held else one
                for name, one in wanted.items()
            }
            for name, server in kept.items():
                _check_whole(server)
                if self.known.is_configured(name) and not _is_same(server, held[name]):
                    raise _read_only(name)
            stored = {name for name, one in held.items() if one.origin is ServerOrigin.DATABASE}
            for name in sorted(stored - kept.keys()):
                await self._store.remove(name)
            for name, server in kept.items():
                if not self.known.is_configured(name) and not _is_same(server, held.get(name)):
                    await self._put(actor, server, held.get(name))
            return await self.known.list()

    async def check(self, actor: Actor, server: ToolServer) -> VisibleServer:
        """Return the description of a server, stored or not; GatewayError with the reason of a failure."""
        check_admin(actor)
        held = await self.known.find(server.id)
        if held is not None:
            server = restore_secrets(server, held)
        _check_whole(server)
        return await self._checker.check(server, actor)

    async def _changeable(self, actor: Actor, server_id: str) -> ToolServer:
        held = await self.get(actor, server_id)
        if self.known.is_configured(server_id):
            raise _read_only(server_id)
        return held

    async def _put(self, actor: Actor, server: ToolServer, held: ToolServer | None) -> ToolServer:
        _check_whole(server)
        now = self._clock()
        kept = replace(
            server,
            origin=ServerOrigin.DATABASE,
            updated_at=now,
            created_at=now if held is None else held.created_at,
        )
        await self._store.put(kept)
        log.info("tool server stored", extra={"tool_server": server.id, "by": actor.user_id})
        return kept


def restore_secrets(server: ToolServer, held: ToolServer) -> ToolServer:
    """Return a server in which MASK is replaced by the stored secrets.

    Nothing is replaced when scheme or host differ, so that hidden secrets are not sent to another host.
    """
    if _origin(server.url) != _origin(held.url):
        return server
    key = held.key if server.key == MASK else server.key
    return replace(server, key=key, headers=_filled(server.headers, held.headers))


def _filled(headers: Mapping[str, str], held: Mapping[str, str]) -> dict[str, str]:
    return {name: held.get(name, value) if value == MASK else value for name, value in headers.items()}


def _origin(url: str) -> tuple[str, str]:
    parts = split_url(url)
    return parts.scheme, parts.netloc


def _check_whole(server: ToolServer) -> None:
    check_server(server)
    if server.key == MASK or MASK in server.headers.values():
        message = f"cannot use tool server {server.id!r}: its key and headers must be sent in full"
        raise GatewayError(ErrorKind.INVALID_REQUEST, message, param="key")


def _by_id(servers: Sequence[ToolServer]) -> dict[str, ToolServer]:
    found: dict[str, ToolServer] = {}
    for server in servers:
        if server.id in found:
            message = f"cannot store the tool servers: the id {server.id!r} is listed twice"
            raise GatewayError(ErrorKind.INVALID_REQUEST, message, param="info.id")
        found[server.id] = server
    return found


def _is_same(server: ToolServer, held: ToolServer | None) -> bool:
    if held is None:
        return False
    same = replace(server, origin=held.origin, updated_at=held.updated_at, created_at=held.created_at)
    return same == held


def _read_only(server_id: str) -> GatewayError:
    message = (
        f"cannot change tool server {server_id!r}: it comes from tool_server_connections of the settings"
    )
    return GatewayError(ErrorKind.CONFLICT, message)
