"""Event streams: who comes back misses nothing, and who may no longer listen hears no more."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.daemons.chat_site import AUTHS, EVENTS, USERS, House, Person, Turn, living, opened_house
from tests.fakes.http.event_listener import Heard, Listener, RefusedError
from tests.fakes.providers.background_upstream import background_upstream

SEED = 20_261_121
TOLD = 300
REPLAY = 400
SECONDS = 1.0
"""How long a stream may go on after its account or credential has ended."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened_house(tmp_path_factory.mktemp("h"), EVENT_REPLAY_FRAMES=str(REPLAY)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(house: House) -> Iterator[None]:
    yield
    house.assert_well()


def tell(house: House, count: int, who: Person | None = None) -> Turn:
    """Let a pipe tell so many statuses."""
    return house.ask("events", str(count), who)[0]


# Coming back ---------------------------------------------------------------------------------------------


def test_a_listener_that_comes_and_goes_hears_what_one_that_stays_hears(house: House) -> None:
    chance = random.Random(SEED)
    came, heard, last_id = 0, list[Heard](), ""
    with house.listen() as stays:
        first = house.listen()
        last_id = first.last_id
        first.close()
        turn = tell(house, TOLD)
        while not heard or not (heard[-1].type == "chat:active" and not heard[-1].payload["active"]):
            comes = house.listen(last_id=last_id)
            came += 1
            assert comes.opened["gap"] is False
            assert comes.opened["resume_from"] == last_id
            time.sleep(chance.uniform(0.0, 0.02))
            comes.close()
            heard += comes.heard
            last_id = comes.last_id
        whole = stays.wait_idle(turn.chat_id)
    assert came > 3
    assert heard == whole
    assert sum(one.type == "status" for one in heard) == TOLD
    assert [one.payload["description"] for one in heard if one.type == "status"] == [*map(str, range(TOLD))]


def test_who_was_away_too_long_is_told_of_a_gap(house: House) -> None:
    with house.listen() as first:
        old = first.last_id
    turn = tell(house, REPLAY + 50)
    house.finished(turn)
    with house.listen(last_id=old) as late:
        assert late.opened["gap"] is True
        late.wait_idle(turn.chat_id)
        assert len(late.heard) == REPLAY
        fresh = late.last_id
    with house.listen(last_id=fresh) as again:
        assert again.opened["gap"] is False
        assert again.heard == []


def test_an_id_of_nobody_is_a_gap(house: House) -> None:
    for last_id in ("nonsense", "deadbeef-1", "-", "é", "0" * 500):
        with house.listen(last_id=last_id) as listener:
            assert (listener.opened["gap"], listener.opened["resume_from"]) == (True, None), last_id


def test_a_restart_is_a_gap(tmp_path: Path) -> None:
    with background_upstream() as provider:
        with living(tmp_path, provider) as house:
            people = house.people
            with house.listen() as before:
                tell(house, 3)
                before.wait(lambda one: len(one.heard) > 3, "events")
                assert house.daemon.stop() == 0
                before.wait_over()
            last_id = before.last_id
        with living(tmp_path, provider, people) as house, house.listen(last_id=last_id) as after:
            assert (after.opened["gap"], after.opened["resume_from"]) == (True, None)
            turn = tell(house, 2)
            assert after.wait_idle(turn.chat_id)[0].id.partition("-")[0] != last_id.partition("-")[0]


def test_one_chat_alone(house: House) -> None:
    turns = [house.begin("events", "2") for _ in range(2)]
    with house.listen(query=f"?chat_id={turns[0].chat_id}") as one, house.listen() as all_of_them:
        for turn in reversed(turns):
            house.start(turn, "events")
        one.wait_idle(turns[0].chat_id)
        for turn in turns:
            all_of_them.wait_idle(turn.chat_id)
        assert {heard.data["chat_id"] for heard in one.heard} == {turns[0].chat_id}
        assert one.heard == all_of_them.of(turns[0].chat_id)


# Who may listen ------------------------------------------------------------------------------------------


def test_a_ticket_opens_one_stream(house: House) -> None:
    told = house.ok("POST", f"{EVENTS}/ticket", {})
    assert told["expires_in"] == 30
    path = f"{EVENTS}?ticket={told['ticket']}"
    with Listener(house.daemon.base_url, {}, path) as listener:
        assert listener.opened["user_id"] == house.ann.id
        turn = tell(house, 1)
        listener.wait_idle(turn.chat_id)
        with pytest.raises(RefusedError, match="401"):
            Listener(house.daemon.base_url, {}, path)
    with pytest.raises(RefusedError, match="401"):
        Listener(house.daemon.base_url, {}, path)
    # It is good for nothing else.
    other = house.ok("POST", f"{EVENTS}/ticket", {})["ticket"]
    assert house.daemon.call("GET", f"/api/v1/chats/?ticket={other}")[0] == 401
    assert house.call("GET", "/api/v1/chats/", None, other)[0] == 401


def test_a_ticket_dies_with_its_account(house: House) -> None:
    eve = house.add()
    ticket = house.ok("POST", f"{EVENTS}/ticket", {}, eve)["ticket"]
    house.ok("POST", f"{USERS}/{eve.id}/update", {"role": "pending"}, house.admin)
    with pytest.raises(RefusedError, match=r"40[13]"):
        Listener(house.daemon.base_url, {}, f"{EVENTS}?ticket={ticket}")


def made_pending(house: House, eve: Person) -> None:
    house.ok("POST", f"{USERS}/{eve.id}/update", {"role": "pending"}, house.admin)


def made_administrator(house: House, eve: Person) -> None:
    house.ok("POST", f"{USERS}/{eve.id}/update", {"role": "admin"}, house.admin)


def removed(house: House, eve: Person) -> None:
    house.ok("DELETE", f"{USERS}/{eve.id}", None, house.admin)


def deactivated(house: House, eve: Person) -> None:
    done = house.daemon.run_ctl("user", "deactivate", eve.id)
    assert done.returncode == 0, done.stderr


def signed_out(house: House, eve: Person) -> None:
    house.ok("POST", f"{AUTHS}/signout", {}, eve)


def key_revoked(house: House, eve: Person) -> None:
    (key,) = house.ok("GET", f"{AUTHS}/api_keys", None, eve)["keys"]
    house.ok("DELETE", f"{AUTHS}/api_keys/{key['id']}", None, eve)


Deed = Callable[[House, Person], None]
DEEDS: dict[str, tuple[Deed, int, int]] = {
    "made pending": (made_pending, 401, 403),
    "made administrator": (made_administrator, 401, 403),
    "removed": (removed, 401, 401),
    "deactivated": (deactivated, 401, 401),
}
"""What befalls an account, and what its session and its key are good for afterwards."""


def status_of(house: House, credential: str) -> int:
    try:
        house.listen(credential).close()
    except RefusedError as refused:
        return int(refused.args[0])
    return 200


@pytest.mark.parametrize(("deed", "by_session", "by_key"), DEEDS.values(), ids=DEEDS)
def test_streams_end_with_what_opened_them(house: House, deed: Deed, by_session: int, by_key: int) -> None:
    eve = house.add()
    with house.listen(eve.token) as one, house.listen(eve.key) as other, house.listen() as of_ann:
        deed(house, eve)
        assert one.wait_over() < SECONDS
        assert other.wait_over() < SECONDS
        assert not of_ann.is_over
    assert (status_of(house, eve.token), status_of(house, eve.key)) == (by_session, by_key)


@pytest.mark.parametrize(
    ("deed", "is_key"), [(key_revoked, True), (signed_out, False)], ids=["key", "session"]
)
def test_a_credential_that_ends_ends_its_streams(house: House, deed: Deed, *, is_key: bool) -> None:
    eve = house.add()
    ended = eve.key if is_key else eve.token
    with house.listen(ended) as stream:
        deed(house, eve)
        assert stream.wait_over() < SECONDS
        last_id = stream.last_id
    assert status_of(house, ended) == 401
    # Whoever still may comes back, and has missed nothing.
    with house.listen(eve.token if is_key else eve.key, last_id=last_id) as again:
        assert again.opened["gap"] is False


def test_a_stream_by_key_ends_when_keys_are_good_for_nothing(house: House) -> None:
    eve = house.add()
    config = f"{AUTHS}/admin/config"
    with house.listen(eve.key) as by_key, house.listen(eve.token) as by_session:
        house.ok("POST", config, {"ENABLE_API_KEYS": False}, house.admin)
        try:
            assert by_key.wait_over() < SECONDS
            assert status_of(house, eve.key) == 403
            assert not by_session.is_over
        finally:
            house.ok("POST", config, {"ENABLE_API_KEYS": True}, house.admin)
    assert status_of(house, eve.key) == 200


# Calls ---------------------------------------------------------------------------------------------------


def test_a_call_waits_for_who_comes_back_and_is_answered_once(house: House) -> None:
    first = house.listen()
    turn, _ = house.ask("asks")
    asked = first.wait_type("confirmation", turn.chat_id)
    first.close()
    call_id = asked.data["call_id"]
    # A call without a listener ends soon, so that there is no time for more here.
    listed = house.ok("GET", f"{EVENTS}/calls")
    with house.listen() as again:
        assert [call["call_id"] for call in listed["calls"]] == [call_id]
        assert again.wait_type("confirmation", turn.chat_id).data["call_id"] == call_id
        assert house.ok("GET", f"{EVENTS}/calls", None, house.bob) == {"calls": [], "total": 0}
        assert house.call("POST", f"{EVENTS}/calls/{call_id}", {"result": True}, house.bob)[0] == 404
        assert house.call("POST", f"{EVENTS}/calls/{call_id}", {"result": True}, house.admin)[0] == 404
        assert house.ok("POST", f"{EVENTS}/calls/{call_id}", {"result": {"value": 7}}) is True
        assert house.call("POST", f"{EVENTS}/calls/{call_id}", {"result": 8})[0] == 409
    assert house.finished(turn)["content"] == "answer: {'value': 7}"
    assert house.ok("GET", f"{EVENTS}/calls")["total"] == 0


def test_nobody_listens_so_a_call_fails(house: House) -> None:
    turn, _ = house.ask("asks")
    message = house.finished(turn)
    assert message["done"] is True
    assert "no live connection" in message["error"]["content"]


def test_a_stopped_answer_takes_its_call_back(house: House) -> None:
    with house.listen() as listener:
        turn, task_id = house.ask("asks")
        call_id = listener.wait_type("confirmation", turn.chat_id).data["call_id"]
        house.ok("POST", f"/api/tasks/stop/{task_id}", {})
        assert house.ok("GET", f"{EVENTS}/calls")["total"] == 0
        assert house.call("POST", f"{EVENTS}/calls/{call_id}", {"result": True})[0] == 404
