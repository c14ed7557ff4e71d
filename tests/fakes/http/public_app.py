"""A public application around a few routes, for tests of handlers and of the edge itself."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from gatewayd.accounts.records import Actor
from gatewayd.audit.trail import AuditTrail
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.app import build_application
from gatewayd.http.connections.capacity import DescriptorBudget
from gatewayd.http.connections.minimum_rate import MinimumRates
from gatewayd.http.middleware import EdgeOptions, EdgeServices, PublicEdge, RequestAuthenticator, TicketStore
from gatewayd.http.observation import RequestObservation
from gatewayd.http.routes import Route
from gatewayd.http.scim_auth import ScimAuthenticator
from gatewayd.http.server import HttpServer
from gatewayd.http.trusted_headers import TrustedHeaders
from gatewayd.scim.request_log import ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.tasks import TaskRegistry
from tests.fakes.http.declared_replies import checked

Client = TestClient[Any, Any]


class FakeAuthenticator:
    """Knows actors by credential and remembers which paths were asked for."""

    def __init__(self, actors: Mapping[str, Actor]) -> None:
        self.actors = actors
        self.seen: list[tuple[str, str, str]] = []

    async def authenticate(self, credential: str, method: str, path: str) -> Actor:
        self.seen.append((credential, method, path))
        if credential not in self.actors:
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the credential")
        return self.actors[credential]


@asynccontextmanager
async def serving(
    rows: Sequence[Route],
    actors: Mapping[str, Actor] | None = None,
    *,
    options: EdgeOptions | None = None,
    body_limit: int = 1024 * 1024,
    authenticator: RequestAuthenticator | None = None,
    door: ScimAuthenticator | None = None,
    shut_out: AccessRevocation | None = None,
    tickets: TicketStore | None = None,
    rates: MinimumRates | None = None,
    trusted_headers: TrustedHeaders | None = None,
    observation: RequestObservation | None = None,
    trail: AuditTrail | None = None,
) -> AsyncIterator[Client]:
    tasks = TaskRegistry()
    provisioning = door or ScimAuthenticator(ScimTokens(False, ()), ScimRequestLog(), "")
    accounts = authenticator or FakeAuthenticator(actors or {})
    doors = EdgeServices(accounts, provisioning, shut_out or AccessRevocation(), tickets, trusted_headers)
    edge = PublicEdge(doors, tasks, options or EdgeOptions())
    application = build_application(
        edge, map(checked, rows), body_limit=body_limit, rates=rates, observation=observation, trail=trail
    )
    server = TestServer(application, handler_cancellation=True)
    async with TestClient(server) as client:
        await client.start_server()
        yield client
    await tasks.close()


@asynccontextmanager
async def listening(
    rows: Sequence[Route],
    actors: Mapping[str, Actor] | None = None,
    *,
    room: DescriptorBudget | None = None,
    rates: MinimumRates | None = None,
    options: EdgeOptions | None = None,
) -> AsyncIterator[tuple[str, int]]:
    """Serve routes on connections of our own, as the daemon does, and yield their address."""
    tasks = TaskRegistry()
    door = ScimAuthenticator(ScimTokens(False, ()), ScimRequestLog(), "")
    doors = EdgeServices(FakeAuthenticator(actors or {}), door, AccessRevocation())
    edge = PublicEdge(doors, tasks, options or EdgeOptions())
    server = HttpServer(build_application(edge, rows, body_limit=1024 * 1024, rates=rates, room=room))
    await server.open()
    host, _, port = (await server.listen_tcp("127.0.0.1", 0)).rpartition(":")
    yield host, int(port)
    await server.close()
    await tasks.close()


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


async def raw_get(client: Client, path: str) -> bytes:
    """Send a path as it is, which no well-behaved client would, and return the whole answer."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer
