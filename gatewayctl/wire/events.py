"""Events and calls on the wire.

`GET /v1/events` answers server-sent events. The first one has the name `session` and the data
`EventSession`; its id, and that of each further one, is where a client goes on (`?since=`). The others have
the data `Envelope`. A call, which somebody has to answer, has no id.
"""

from typing import Any

from gatewayctl.wire.base import Reply, Request


class EventSession(Reply):
    """What a stream begins with: whose events it has ("*" for everybody), and whether some were lost."""

    user_id: str
    user: str = ""
    gap: bool = False


class Event(Reply):
    """What happens, by its type."""

    type: str
    data: Any = None


class Envelope(Reply):
    """An event and the message that it is about.

    `user_id` is given in the stream of everybody, `call_id` when the event waits for an answer.
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
    """The calls that wait for an answer, oldest first."""

    calls: list[Call]


class CallAnswer(Request):
    """The answer to a call: exactly one of the two is to be given."""

    result: Any = None
    error: str | None = None
