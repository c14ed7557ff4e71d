"""Tool servers on the wire."""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, FailFast, Field
from pydantic_core import PydanticCustomError

from gatewayctl.wire.base import Reply, Request, Written
from gatewayctl.wire.models import Grant

Kind = Literal["openapi", "mcp"]

MAX_HEADERS: Final = 1000
"""Maximum number of headers of a tool server; it also limits the number of errors in a reply."""


class ToolServer(Reply):
    """A tool server; its key and the values of its headers are never shown.

    `path` is that of the description below `url`; `described`: the description itself is stored. `functions`
    are the offered ones, all if empty. `origin` is database, or settings, which commands cannot change.
    """

    id: str
    name: str
    url: str
    type: str
    description: str = ""
    path: str = ""
    described: bool = False
    keyed: bool = False
    headers: list[str] = Field(default_factory=list)
    functions: list[str] = Field(default_factory=list)
    timeout: float | None = None
    is_active: bool = True
    origin: str = "database"
    grants: list[Grant] = Field(default_factory=list)
    updated_at: str | None = None
    created_at: str | None = None


class ToolServerList(Reply):
    """Tool servers by id; `problems` are sentences about entries of the settings that cannot be used."""

    servers: list[ToolServer]
    problems: list[str] = Field(default_factory=list)


class ToolServerWritten(Written, ToolServer):
    """A tool server after a write."""


def _few(headers: object) -> object:
    if isinstance(headers, dict) and len(headers) > MAX_HEADERS:
        raise PydanticCustomError("too_many", "There are more than {most} headers", {"most": MAX_HEADERS})
    return headers


class NewToolServer(Request):
    """A tool server to store.

    `key` is sent as a bearer token; `headers`, at most MAX_HEADERS, may contain placeholders such as
    `{{CHAT_ID}}`. With `spec` the description is not fetched. `timeout` of a call is in seconds, that of the
    settings when absent.
    """

    id: str
    url: str
    type: Kind = "openapi"
    name: str | None = None
    description: str = ""
    path: str | None = None
    key: str = ""
    headers: Annotated[dict[str, str], BeforeValidator(_few)] = Field(default_factory=dict)
    spec: dict[str, Any] | None = None
    functions: Annotated[list[str], FailFast()] = Field(default_factory=list)
    timeout: float | None = Field(None, gt=0, le=86_400)


class OfferedTool(Reply):
    """One function of a server."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class ToolServerCheck(Reply):
    """The offer of a server: its title, version and functions."""

    id: str
    title: str = ""
    version: str = ""
    tools: list[OfferedTool] = Field(default_factory=list)
