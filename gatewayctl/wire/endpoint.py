"""Row of the route table: method, path, parameters and models of one endpoint."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from gatewayctl.wire.base import Reply, Request

RequestType = TypeVar("RequestType", bound=Request)
ReplyType = TypeVar("ReplyType", bound=Reply)


class NoBody(Request):
    """The request model of an endpoint that takes no body."""


class ForeignReply(Reply):
    """The reply model of an endpoint that answers in another protocol.

    It is an OpenAI completion, server-sent events, the text of the metrics, or a tar archive.
    """


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[RequestType, ReplyType]):
    """One route of the control API.

    A name in braces in `path` stands for one segment. `query` names the parameters of the query string. An
    answer of a `slow` endpoint may take any time: its client sets no limit.
    """

    method: str
    path: str
    request: type[RequestType]
    reply: type[ReplyType]
    summary: str
    query: tuple[str, ...] = ()
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
