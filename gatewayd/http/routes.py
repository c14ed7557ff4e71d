"""Route rows: the path, handler, access policy and dialect of each endpoint."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, Protocol

from aiohttp import web
from pydantic import BaseModel

from gatewayd.accounts.records import Actor
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.responses.fast_response import FastReply
from gatewayd.http.schemas import Reply, declared_query, declared_reply
from gatewayd.metering.begun_call import BegunCall
from gatewayd.pipeline.begun_stream import Pending

JSON_BODY: Final = ("application/json",)
FORM_BODY: Final = ("multipart/form-data",)

ANTHROPIC_VERSION: Final = "anthropic-version"
"""Header that every client of the messages dialect sends."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BASES: Final = ("/api", "/api/v1", "/v1", "/openai", "/openai/v1", "/ollama/v1")
"""Base paths under which OpenAI clients look for the same endpoints."""


class RouteAccess(StrEnum):
    """Access policies of routes."""

    # Everyone; credentials are ignored.
    PUBLIC = "public"
    # Everyone; an invalid credential counts as none.
    OPTIONAL = "optional"
    # Any account, also a pending one.
    ACCOUNT = "account"
    # An active account with the role user or admin.
    VERIFIED = "verified"
    # An active administrator.
    ADMIN = "admin"
    # A client with the SCIM token, without an account (gatewayd-scim(7), DESCRIPTION).
    SCIM = "scim"
    # A peer of the control socket.
    CONTROL = "control"


class RouteDialect(StrEnum):
    """Dialects of replies, including error replies."""

    NATIVE = "native"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"
    SCIM = "scim"
    CONTROL = "control"


class StreamEnd(Enum):
    """How the forwarding of a stream ended."""

    # The client has the whole stream, or one that ends with an error frame.
    SENT = "sent"
    # The client has left.
    LEFT = "left"
    # A defect of the gateway.
    FAILED = "failed"


class BegunStream(Protocol):
    """A stream whose first chunk has arrived."""

    @property
    def reply(self) -> web.StreamResponse:
        """The reply."""
        ...

    def begin(self, ended: Callable[[StreamEnd], None]) -> None:
        """Send the stream as it comes; `ended` is called at its end, unless the answer is cancelled."""
        ...


class BegunAnswer(Protocol):
    """A request that was sent to a provider without a wait."""

    @property
    def is_stream(self) -> bool:
        """Whether the reply is a stream."""
        ...

    def take(self) -> FastReply | BegunStream | Pending | None:
        """Return the reply once the answer has arrived; None if the handler of the row has to give it."""
        ...

    def hand_over(self) -> BegunCall:
        """Return what the handler of the row needs to go on with the request."""
        ...

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        ...


FastHandler = Callable[[web.Request, bytes, Actor, Callable[[], None]], BegunAnswer | FastReply | None]
"""Begins a request with its body, for its actor, and returns at once: with its reply if that needs nobody.

It returns None, and has sent nothing, for a request that needs a wait. It raises the refusals of the handler.
The last argument is called when the answer can be taken; until that of a stream has begun, it may be called
again.
"""

ReadyReply = Callable[[], FastReply | None]
"""Returns the reply of a handler to everyone, None if that needs a wait."""


@dataclass(frozen=True, slots=True)
class Route:
    """One row of a route table.

    `path` is served with and without a trailing slash. `interruptible` handlers are cancelled when their
    client leaves, and so is every GET but one that `writes`. Other handlers run to their end, so that
    committed changes are also announced. `slashes` permits an encoded slash in the path, for ids with one.
    Handlers with `invites` answer `Expect: 100-continue` themselves, when they want the body. `tickets`
    permits a ticket in the query in place of a credential. `takes` are the accepted media types of the body,
    the recommended one first; none where the body is ignored. Pages of other origins may not write; `guarded`
    also excludes their GET. `use` is the use of the request in the bounds of connections. `statuses` are
    those of a success; none where every request is refused. `asks` marks a POST that changes nothing, so that
    it is not audited. `reply` describes the reply of a success, and `query` each query parameter; their
    defaults are the declarations of the handler. `begin` answers plain requests on the fast path, and `ready`
    those of a public GET that counts for no bound.
    """

    method: str
    path: str
    handler: Handler
    access: RouteAccess
    summary: str
    dialect: RouteDialect = RouteDialect.NATIVE
    request: type[BaseModel] | None = None
    reply: Reply | None = None
    tag: str = ""
    interruptible: bool = False
    writes: bool = False
    slashes: bool = False
    invites: bool = False
    tickets: bool = False
    takes: tuple[str, ...] = JSON_BODY
    guarded: bool = False
    use: RequestUse = RequestUse.REQUEST
    statuses: tuple[int, ...] = (200,)
    asks: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    begin: FastHandler | None = None
    ready: ReadyReply | None = None

    def __post_init__(self) -> None:
        if self.reply is None:
            object.__setattr__(self, "reply", declared_reply(self.handler))
        if not self.query:
            object.__setattr__(self, "query", declared_query(self.handler))


def answer_row(
    path: str,
    handler: Handler,
    summary: str,
    *,
    dialect: RouteDialect,
    tag: str,
    begin: FastHandler | None = None,
) -> Route:
    """Return the row of a POST that a model answers; it ends when its client leaves."""
    return Route(
        "POST",
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        dialect=dialect,
        tag=tag,
        interruptible=True,
        use=RequestUse.ANSWER,
        begin=begin,
    )


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """The common path prefix and tag of the rows of one noun."""

    prefix: str
    tag: str

    def row(
        self,
        method: str,
        path: str,
        handler: Handler,
        access: RouteAccess,
        summary: str,
        request: type[BaseModel] | None = None,
        *,
        use: RequestUse = RequestUse.REQUEST,
        asks: bool = False,
        ready: ReadyReply | None = None,
    ) -> Route:
        """Return one row of the noun; `path` follows the prefix."""
        return Route(
            method,
            self.prefix + path,
            handler,
            access,
            summary,
            request=request,
            tag=self.tag,
            use=use,
            asks=asks,
            ready=ready,
        )
