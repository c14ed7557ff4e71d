"""Events and calls on the wire.

`GET /v1/events` answers server-sent events. The first one has the name `session` and the data
`EventSession`; its id, and that of each further event, is a position to resume at (`?since=`). The others
have the data `Envelope`. A call, which waits for an answer, has no id.
"""

from typing import Any

from gatewayctl.wire.base import Reply, Request


class EventSession(Reply):
    """Start of a stream: the user of its events ("*" for all users), and whether events were lost."""

    user_id: str
    user: str = ""
    gap: bool = False


class Event(Reply):
    """An event: its type and its data."""

    type: str
    data: Any = None


class Envelope(Reply):
    """An event and the message that it belongs to.

    `user_id` is set in the stream of all users, `call_id` if the event waits for an answer.
    """

    user_id: str | None = None
    chat_id: str = ""
    message_id: str = ""
    call_id: str | None = None
    data: Event


class Call(Reply):
    """A question to a user: confirmation, input or execute."""

    id: str
    user_id: str
    user: str = ""
    chat_id: str = ""
    message_id: str = ""
    type: str
    data: Any = None
    created_at: str | None = None


class CallList(Reply):
    """The pending calls, oldest first."""

    calls: list[Call]


class CallAnswer(Request):
    """The answer to a call: exactly one of the two fields is required."""

    result: Any = None
    error: str | None = None
