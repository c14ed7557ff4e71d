"""The route row: what is served, to whom, in which dialect."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from aiohttp import web
from pydantic import BaseModel

from gatewayd.http.connections.uses import RequestUse
from gatewayd.http.schemas import Reply, declared_query, declared_reply

JSON_BODY: Final = ("application/json",)
FORM_BODY: Final = ("multipart/form-data",)

ANTHROPIC_VERSION: Final = "anthropic-version"
"""The header that every client of the messages dialect sends (4.3)."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RouteAccess(StrEnum):
    """Who may call a route (interface specification, section 5)."""

    # No credential is looked at.
    PUBLIC = "public"
    # A good credential is known to the handler, a bad one counts as none.
    OPTIONAL = "optional"
    # Any account, pending ones too.
    ACCOUNT = "account"
    # An active account with the role user or admin.
    VERIFIED = "verified"
    # An active administrator.
    ADMIN = "admin"
    # A client with the SCIM token (5.3), who is no account.
    SCIM = "scim"
    # A peer of the control socket.
    CONTROL = "control"


class RouteDialect(StrEnum):
    """In which shape a route answers, errors included."""

    NATIVE = "native"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"
    SCIM = "scim"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Route:
    """One row of a route table.

    `path` is served with and without a trailing slash. `interruptible` handlers are cancelled when their
    client leaves; the others run to their end, so that what was committed is also announced. `slashes`
    permits an encoded slash in the path, for ids that hold one. Handlers with `invites` tell a client that
    waits for it to send the body (`Expect: 100-continue`) themselves, once they know that they want it.
    `tickets` lets callers in who show a ticket in the query instead of a credential. `takes` are the media
    types of a body that is read, first the one to send; none where a body is passed over. A page of another
    origin may not write; `guarded` keeps it from a GET too.
    `use` is what a request counts for among the connections. `statuses` are those of a success; none where
    every request is refused. `asks` marks a question, or a part of an answer, that is sent by POST: nothing
    that an audit tells of is changed. `reply` is what a success answers, and `query` has a sentence for each
    parameter that is read of the query: a row that names none has those that its handler declares.
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
    slashes: bool = False
    invites: bool = False
    tickets: bool = False
    takes: tuple[str, ...] = JSON_BODY
    guarded: bool = False
    use: RequestUse = RequestUse.REQUEST
    statuses: tuple[int, ...] = (200,)
    asks: bool = False
    query: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reply is None:
            object.__setattr__(self, "reply", declared_reply(self.handler))
        if not self.query:
            object.__setattr__(self, "query", declared_query(self.handler))


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """What the rows of one noun share, said once: the head of their paths, and their tag."""

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
        )
