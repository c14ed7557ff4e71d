"""EventFollower of the event stream, which reconnects after broken connections."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gatewayctl.client import ControlClient
from gatewayctl.failures import CommandError
from gatewayctl.transport import Frame
from gatewayctl.wire import routes
from gatewayctl.wire.events import Envelope, EventSession

Model = TypeVar("Model", bound=BaseModel)

RETRY_SECONDS: Final = 1.0
GAP: Final = "gap"
"""Type of the notice about lost events: the daemon keeps events for a while, but not over a restart."""


@dataclass(frozen=True, slots=True)
class Whose:
    """Selection of events: those of a user, of all users, or of one chat."""

    user: str | None = None
    chat: str | None = None
    everybody: bool = False


class Happening(BaseModel):
    """One event as it is printed; `id` is the position to resume after it. A call has a `call_id` instead."""

    model_config = ConfigDict(defer_build=True)

    id: str | None = None
    user: str = ""
    chat_id: str = ""
    message_id: str = ""
    call_id: str | None = None
    type: str
    data: Any = None


class EventFollower:
    """Yields events for ever; `last` is the id of the last one.

    A broken connection is opened again and resumes after `last`. The first connection must succeed.
    """

    def __init__(
        self,
        client: ControlClient,
        whose: Whose,
        since: str | None = None,
        *,
        note: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._whose = whose
        self._note = note
        self._sleep = sleep
        self._names: dict[str, str] = {}
        self._owner = ""
        # Number of connections so far.
        self._opened = 0
        self.last = since

    def events(self) -> Generator[Happening, None, None]:
        """Yield events; raises the failure of the daemon if it refuses."""
        while True:
            before = self._opened
            try:
                yield from self._connection()
            except CommandError as error:
                if error.kind != "unreachable" or not self._opened:
                    raise
                if self._opened > before:
                    self._note("The connection broke; connecting again.")
            self._sleep(RETRY_SECONDS)

    def _connection(self) -> Iterator[Happening]:
        whose = self._whose
        frames = self._client.listen(
            routes.FOLLOW_EVENTS, user=whose.user, chat=whose.chat, since=self.last, everybody=whose.everybody
        )
        with closing(frames):
            for frame in frames:
                event = self._session(frame) if frame.name == "session" else self._event(frame)
                # Only now: an event that was not yielded comes again after a broken connection.
                self.last = frame.id or self.last
                if event is not None:
                    yield event

    def _session(self, frame: Frame) -> Happening | None:
        session = _read(EventSession, frame)
        self._opened += 1
        self._owner = session.user_id
        if session.user:
            self._names[session.user_id] = session.user
        return Happening(type=GAP, id=frame.id) if session.gap else None

    def _event(self, frame: Frame) -> Happening:
        envelope = _read(Envelope, frame)
        return Happening(
            id=frame.id,
            user=self._name(envelope.user_id or self._owner),
            chat_id=envelope.chat_id,
            message_id=envelope.message_id,
            call_id=envelope.call_id,
            type=envelope.data.type,
            data=envelope.data.data,
        )

    def _name(self, user_id: str) -> str:
        """Return the e-mail address of an account, or its id if it is removed; the result is cached."""
        if user_id not in self._names:
            try:
                self._names[user_id] = self._client.call(routes.GET_USER, user_id).email
            except CommandError as error:
                if error.kind != "not_found":
                    raise
                self._names[user_id] = user_id
        return self._names[user_id]


def _read(kind: type[Model], frame: Frame) -> Model:
    try:
        return kind.model_validate(frame.data)
    except ValidationError as error:
        raise CommandError(
            "protocol_mismatch", "cannot read an event of the daemon: it is not as expected"
        ) from error
