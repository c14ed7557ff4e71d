"""Records of resumable streams and of replies to repeated requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class StreamState(StrEnum):
    """States of a stream."""

    # The answer goes on.
    RUNNING = "running"
    # The answer ended as the model ended it.
    COMPLETE = "complete"
    # The answer ended with an error, whose frame is the last one.
    BROKEN = "broken"
    # The gateway ended during the answer; the last frames may be missing.
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream without its frames.

    `protocol` names the protocol of its frames, `headers` are those of its reply. `last` is the number of the
    newest frame, 0 without any, `size` that of all bytes. Times are in epoch seconds.
    """

    id: str
    user_id: str
    protocol: str
    state: StreamState
    created_at: int
    ended_at: int | None = None
    last: int = 0
    size: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Consecutive numbered frames, joined; `first` and `last` are their numbers."""

    stream_id: str
    first: int
    last: int
    frames: bytes


@dataclass(frozen=True, slots=True)
class EndedStream:
    """What a decision about the deletion of a stream needs."""

    id: str
    user_id: str
    ended_at: int
    size: int


@dataclass(frozen=True, slots=True)
class RequestKey:
    """An idempotency key of a user; `digest` identifies both, and `fingerprint` the request."""

    user_id: str
    digest: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply to repeat: a status, headers and a text, or the id of a stream.

    `is_repeated` is set for all callers but the first.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    stream_id: str = ""
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request with an idempotency key; without a reply, it had not ended when it was stored."""

    digest: str
    user_id: str
    fingerprint: str
    created_at: int
    reply: StoredReply | None = None
