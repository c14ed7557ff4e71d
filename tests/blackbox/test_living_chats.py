"""Answers to stored chats outlive their callers, and end when somebody says so."""

import contextlib
import http.client
import itertools
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.fakes.daemons.chat_site import (
    CHATS,
    COMPLETIONS,
    TASKS,
    House,
    Person,
    Turn,
    opened_house,
    wait_until,
)
from tests.fakes.providers.upstream import (
    SILENCE,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

FIRST = sse(openai_chunk(content="Hello"))
REST = b"".join([*openai_stream([" there", "!"])])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    settings = {}
    if request.param == "postgresql":
        settings["DATABASE_URL"] = request.getfixturevalue("postgres").migrated_database()
    with opened_house(tmp_path_factory.mktemp("h"), **settings) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(house: House) -> Iterator[None]:
    house.provider.script()
    yield
    house.provider.release()
    house.assert_well()


def silent(house: House) -> None:
    """Let the provider say one word and the rest when it is released."""
    house.provider.script(Reply(steps=[FIRST, SILENCE, REST]))


@contextlib.contextmanager
def following(house: House, turn: Turn, model: str = "o.m", **fields: Any) -> Iterator[bytearray]:
    """Ask for a stream that is kept, and leave at the end of the block; yields what came first."""
    connection = http.client.HTTPConnection(urlsplit(house.daemon.base_url).netloc, timeout=20)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {house.ann.key}", "Content-Type": "application/json"}
        connection.request("POST", COMPLETIONS, json.dumps(house.body(turn, model, **fields)), headers)
        if fields.get("stream", True):
            got = bytearray(connection.getresponse().read1(65536))
            assert b'"delta"' in got
            yield got
        else:
            house.provider.wait_silent()
            yield bytearray()


# Who leaves ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_who_leaves_in_the_middle_ends_nothing(house: House, *, stream: bool) -> None:
    if stream:
        silent(house)
    else:
        whole = json_reply(openai_completion("Hello there!"))
        house.provider.script(Reply(steps=whole.steps, before=SILENCE, content_type="application/json"))
    turn = house.begin()
    with following(house, turn, stream=stream):
        house.provider.wait_silent()
    assert house.tasks_of(turn)
    assert not house.provider.fake.closed.is_set()
    house.provider.release()
    message = house.finished(turn)
    assert (message["content"], message["done"], message.get("error")) == ("Hello there!", True, None)
    assert message["parentId"] == turn.question


def test_who_leaves_a_pipe_ends_nothing(house: House) -> None:
    turn = house.begin("endless")
    with following(house, turn, "endless"):
        house.wait_begun(turn)
    (task_id,) = house.tasks_of(turn)
    assert not (house.folder / f"{turn.text}.ended").exists()
    assert house.ok("POST", f"{TASKS}/stop/{task_id}")["status"] is True
    house.wait_ended(turn)
    assert house.message(turn)["content"] == "one two three"


def test_without_a_chat_who_leaves_ends_the_answer(house: House) -> None:
    silent(house)
    with following(house, Turn("", "", "", "hi")):
        house.provider.wait_silent()
    house.provider.wait_closed(5)
    silent(house)
    with following(house, Turn("", "", "", "unkept"), "endless"):
        house.wait_begun(Turn("", "", "", "unkept"))
    house.wait_ended(Turn("", "", "", "unkept"))


def test_nobody_reads_and_a_listener_hears_all(house: House) -> None:
    silent(house)
    with house.listen() as listener:
        turn, _ = house.ask()
        house.provider.wait_silent()
        listener.wait_type("chat:completion", turn.chat_id)
        house.provider.release()
        # Changes of the list of chats are of no message.
        heard = [one for one in listener.wait_idle(turn.chat_id) if one.type != "chat:list"]
    assert {one.data["message_id"] for one in heard} == {turn.answer}
    told = [one.payload["content"] for one in heard if "content" in (one.payload or {})]
    assert told[0] == "Hello"
    assert told[-1] == "Hello there!"
    assert all(after.startswith(before) for before, after in itertools.pairwise(told))
    assert [one.type for one in heard][:2] == ["chat:active", "chat:completion"]
    assert heard[-1].payload == {"active": False}


# Who stops -----------------------------------------------------------------------------------------------


def stop_by_id(house: House, turn: Turn, task_id: str, who: Person) -> Any:
    return house.ok("POST", f"{TASKS}/stop/{task_id}", {}, who)


def stop_by_chat(house: House, turn: Turn, task_id: str, who: Person) -> Any:
    return house.ok("POST", f"{TASKS}/chat/{turn.chat_id}/stop", {}, who)


STOPS = {"by its id": stop_by_id, "by its chat": stop_by_chat}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("name", ["ann", "admin"])
def test_a_stopped_answer_is_done_with_what_there_is(house: House, stop: Any, name: str) -> None:
    silent(house)
    with house.listen() as listener:
        turn, task_id = house.ask()
        listener.wait_type("chat:completion", turn.chat_id)
        assert stop(house, turn, task_id, house.people[name])["status"] is True
        house.provider.wait_closed(5)
        assert house.tasks_of(turn) == []
        message = house.message(turn)
        assert (message["content"], message["done"], message.get("error")) == ("Hello", True, None)
        heard = [one.type for one in listener.wait_idle(turn.chat_id)]
    assert heard[-2:] == ["chat:tasks:cancel", "chat:active"]
    again = stop(house, turn, task_id, house.people[name])
    assert again["status"] is (stop is stop_by_chat)


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_a_stopped_pipe_comes_to_its_end(house: House, stop: Any) -> None:
    turn, task_id = house.ask("endless")
    house.wait_begun(turn)
    assert stop(house, turn, task_id, house.ann)["status"] is True
    house.wait_ended(turn)
    message = house.message(turn)
    assert (message["content"], message["done"]) == ("one two three", True)


def test_others_stop_nothing(house: House) -> None:
    silent(house)
    turn, task_id = house.ask()
    house.provider.wait_silent()
    told = house.ok("POST", f"{TASKS}/stop/{task_id}", {}, house.bob)
    assert told == {"status": False, "message": f"Task with ID {task_id} not found."}
    assert house.call("POST", f"{TASKS}/chat/{turn.chat_id}/stop", {}, house.bob)[0] == 404
    assert house.ok("GET", f"{TASKS}/chat/{turn.chat_id}", None, house.bob) == {"task_ids": []}
    assert house.tasks_of(turn) == [task_id]
    assert task_id in house.ok("GET", TASKS, None, house.admin)["tasks"]
    house.provider.release()
    assert house.finished(turn)["content"] == "Hello there!"


def test_a_deleted_chat_stops_what_runs_for_it(house: House) -> None:
    turn, task_id = house.ask("endless")
    house.wait_begun(turn)
    assert house.ok("DELETE", f"{CHATS}/{turn.chat_id}") is True
    house.wait_ended(turn)
    assert task_id not in house.ok("GET", TASKS, None, house.admin)["tasks"]
    assert house.call("GET", f"{CHATS}/{turn.chat_id}")[0] == 404


def test_an_answer_that_is_asked_for_again_takes_the_place_of_the_first(house: House) -> None:
    turn, task_id = house.ask("endless")
    house.wait_begun(turn)
    second = house.start(turn)
    house.wait_ended(turn)
    assert second != task_id
    message = house.finished(turn)
    assert (message["content"], message["done"], message["model"]) == ("Hello from m", True, "o.m")


# Many at once --------------------------------------------------------------------------------------------


def test_two_hundred_answers_at_once_are_not_mixed_up(house: House) -> None:
    turns = [house.begin("echo", f"{number:03} {uuid.uuid4()}") for number in range(200)]
    with house.listen() as listener:
        with ThreadPoolExecutor(20) as pool:
            task_ids = list(pool.map(lambda turn: house.start(turn, "echo"), turns))
        assert len(set(task_ids)) == 200
        wait_until(
            lambda: not set(task_ids) & set(house.ok("GET", TASKS, None, house.admin)["tasks"]), "ends"
        )
        for turn in turns:
            message = house.message(turn)
            assert (message["content"], message["done"]) == (turn.text, True)
            assert [status["description"] for status in message["statusHistory"]] == [turn.text]
            heard = listener.wait_idle(turn.chat_id)
            assert {one.data["message_id"] for one in heard} == {turn.answer}
            done = [one.payload for one in heard if one.type == "chat:completion"][-1]
            assert (done["done"], done["content"]) == (True, turn.text)


def test_events_that_come_at_once_are_all_kept(house: House) -> None:
    silent(house)
    turn, task_id = house.ask()
    house.provider.wait_silent()
    place = f"{CHATS}/{turn.chat_id}/messages/{turn.answer}/event"

    def tell(number: int) -> None:
        told = {"type": "message", "data": {"content": f"<{number}>"}}
        assert house.ok("POST", place, told, house.ann.key) is True
        told = {"type": "status", "data": {"description": str(number), "done": True}}
        assert house.ok("POST", place, told, house.ann.key) is True

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(tell, range(100)))
    message = house.message(turn)
    numbers = sorted(map(str, range(100)))
    assert sorted(message["content"].removeprefix("<").removesuffix(">").split("><")) == numbers
    assert sorted(item["description"] for item in message["statusHistory"]) == numbers
    house.ok("POST", f"{TASKS}/stop/{task_id}", {})
    # What the model said takes the place of what events wrote, but not of the statuses.
    message = house.message(turn)
    assert (message["content"], len(message["statusHistory"])) == ("Hello", 100)
