"""Following events over broken connections."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayctl.events.follower import RETRY_SECONDS, EventFollower, Happening, Whose
from gatewayctl.failures import CommandError
from gatewayctl.transport import Frame
from gatewayctl.wire import routes

BROKEN = CommandError("unreachable", "cannot read: the connection broke")
REFUSED = CommandError("not_found", "cannot find user 'x'")

ANN = Whose("ann")

Step = Frame | CommandError


def session(position: str = "b-0", *, gap: bool = False, user: str = "ann@example.org") -> Frame:
    return Frame("session", position, {"user_id": "u1", "user": user, "gap": gap})


def event(number: int | None, **more: Any) -> Frame:
    data = {"chat_id": "c1", "message_id": "m1", "data": {"type": "status", "data": {"n": number}}}
    return Frame("", None if number is None else f"b-{number}", {**data, **more})


class Scripted:
    """A client whose connections go as a test says; when they are used up, the daemon is gone."""

    def __init__(self, *connections: list[Step]) -> None:
        self.connections = list(connections)
        self.asked: list[tuple[Any, ...]] = []
        self.looked_up: list[str] = []
        self.closed = 0

    def listen(
        self, endpoint: object, *, user: str | None, chat: str | None, since: str | None, everybody: bool
    ) -> Iterator[Frame]:
        assert endpoint is routes.FOLLOW_EVENTS
        self.asked.append((user, chat, since, everybody))
        try:
            for step in self.connections.pop(0) if self.connections else [REFUSED]:
                if isinstance(step, CommandError):
                    raise step
                yield step
        finally:
            self.closed += 1

    def call(self, endpoint: object, user_id: str) -> Any:
        assert endpoint is routes.GET_USER
        self.looked_up.append(user_id)
        if user_id == "gone":
            raise REFUSED
        if user_id == "broken":
            raise BROKEN
        return SimpleNamespace(email=f"{user_id}@example.org")


class Trial:
    """A follower of a scripted client, and what it did besides."""

    def __init__(self, *connections: list[Step], whose: Whose = ANN, since: str | None = None) -> None:
        self.client = Scripted(*connections)
        self.notes: list[str] = []
        self.slept: list[float] = []
        client: Any = self.client
        self.follower = EventFollower(client, whose, since, note=self.notes.append, sleep=self.slept.append)

    def all(self) -> tuple[list[Happening], CommandError]:
        """Return what happens until it fails."""
        seen: list[Happening] = []
        with pytest.raises(CommandError) as caught:
            seen.extend(self.follower.events())
        return seen, caught.value


def test_events_are_told_with_their_place() -> None:
    trial = Trial([session(), event(1), event(None, call_id="k"), REFUSED])
    seen, error = trial.all()
    assert seen[0] == Happening(
        id="b-1", user="ann@example.org", chat_id="c1", message_id="m1", type="status", data={"n": 1}
    )
    assert (seen[1].id, seen[1].call_id) == (None, "k")
    assert (error, trial.follower.last) == (REFUSED, "b-1")
    assert trial.client.closed == 1


def test_a_broken_connection_goes_on_where_it_was() -> None:
    trial = Trial([session(), event(1), BROKEN], [BROKEN], [BROKEN], [session("b-1"), event(2), REFUSED])
    seen, _ = trial.all()
    assert [each.id for each in seen] == ["b-1", "b-2"]
    assert [since for _, _, since, _ in trial.client.asked] == [None, "b-1", "b-1", "b-1"]
    assert trial.notes == ["The connection broke; connecting again."]
    assert trial.slept == [RETRY_SECONDS] * 3


def test_who_got_nothing_goes_on_from_its_beginning() -> None:
    trial = Trial([session("b-7"), BROKEN], [session("b-7"), REFUSED])
    assert trial.all()[0] == []
    assert trial.client.asked[1] == ("ann", None, "b-7", False)


def test_a_connection_that_never_was_is_a_failure() -> None:
    trial = Trial([BROKEN])
    assert trial.all() == ([], BROKEN)
    assert (trial.notes, trial.slept) == ([], [])


def test_a_refusal_ends_it_also_later() -> None:
    trial = Trial([session(), BROKEN], [REFUSED])
    assert trial.all() == ([], REFUSED)


def test_lost_events_are_told() -> None:
    trial = Trial([session("c-4", gap=True), event(5), REFUSED], since="b-9", whose=Whose(chat="c1"))
    seen, _ = trial.all()
    assert [(each.type, each.id) for each in seen] == [("gap", "c-4"), ("status", "b-5")]
    assert trial.client.asked == [(None, "c1", "b-9", False)]


def test_users_are_looked_up_once_when_all_are_followed() -> None:
    events = [event(number, user_id=name) for number, name in enumerate(["u7", "gone", "u7", "gone"])]
    trial = Trial([session(user=""), *events, REFUSED], whose=Whose(everybody=True))
    seen, _ = trial.all()
    assert [each.user for each in seen] == ["u7@example.org", "gone", "u7@example.org", "gone"]
    assert trial.client.looked_up == ["u7", "gone"]
    assert trial.client.asked == [(None, None, None, True)]


def test_an_event_whose_user_could_not_be_looked_up_comes_again() -> None:
    first = [session(user=""), event(1, user_id="u7"), event(2, user_id="broken")]
    trial = Trial(first, [session("b-1", user=""), REFUSED], whose=Whose(everybody=True))
    seen, _ = trial.all()
    assert [each.id for each in seen] == ["b-1"]
    assert [since for _, _, since, _ in trial.client.asked] == [None, "b-1"]


@pytest.mark.parametrize("frame", [Frame("session", None, {}), Frame("", "b-1", {"data": {"data": 1}})])
def test_what_cannot_be_read_is_another_protocol(frame: Frame) -> None:
    seen, error = Trial([session(), frame]).all()
    assert (seen, error.kind) == ([], "protocol_mismatch")
