"""Answers to chats when several things happen at once, at any moment, and when plugins do not let go."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.chat_site import (
    CHATS,
    COMPLETIONS,
    EVENTS,
    PIPES,
    TASKS,
    House,
    Turn,
    opened_house,
    wait_until,
)
from tests.fakes.http.event_listener import Listener
from tests.fakes.http.raw_http import connected

SEED = 20_261_123
QUEUE = 20
"""Events that wait for a slow listener."""

BLOCKING = '''"""
title: {name}
"""
import time
from pathlib import Path


class Pipe:
    {kind} pipe(self, body):
        """Block for ever, without a word."""
        (Path(FOLDER) / (body["messages"][-1]["content"] + ".begun")).touch()
        while True:
            time.sleep(0.05)
'''
LOUD = '''"""
title: Loud
"""


class Pipe:
    async def pipe(self, body, __event_emitter__):
        """Tell long statuses, as many as it is asked for."""
        for number in range(int(body["messages"][-1]["content"])):
            await __event_emitter__({"type": "own", "data": {"number": number, "text": "x" * 100_000}})
        return "told"
'''


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    blocking = {name: BLOCKING.format(name=name, kind=kind) for name, kind in KINDS.items()}
    folder = tmp_path_factory.mktemp("h")
    pipes = {**PIPES, **blocking, "loud": LOUD}
    with opened_house(folder, pipes=pipes, EVENT_QUEUE_FRAMES=str(QUEUE), DRAIN_TIMEOUT="5") as opened:
        yield opened
        opened.assert_well()


KINDS = {"blocks_thread": "def", "blocks_loop": "async def"}


@pytest.fixture(autouse=True)
def well(house: House) -> Iterator[None]:
    house.provider.script()
    yield
    house.assert_well()


def assert_done(message: dict[str, Any], text: str) -> None:
    """Check that an answer is over, and holds the beginning of a text and nothing else."""
    assert message["done"] is True, message
    assert text.startswith(message["content"]), message
    assert "error" not in message, message


def test_answers_that_are_stopped_at_any_moment(house: House) -> None:
    chance = random.Random(SEED)

    def one(pause: float) -> tuple[Turn, dict[str, Any]]:
        turn = house.begin("echo", f"{pause} " + "word" * 100)
        task_id = house.start(turn, "echo")
        time.sleep(pause)
        house.ok("POST", f"{TASKS}/stop/{task_id}", {})
        assert house.tasks_of(turn) == []
        return turn, house.message(turn)

    with ThreadPoolExecutor(4) as pool:
        for turn, message in pool.map(one, [chance.uniform(0.0, 0.12) for _ in range(40)]):
            assert_done(message, turn.text)
            assert house.message(turn) == message


def test_chats_that_are_deleted_at_any_moment(house: House) -> None:
    chance = random.Random(SEED)

    def one(pause: float) -> Turn:
        turn = house.begin("echo", f"{pause} " + "word" * 100)
        house.start(turn, "echo")
        time.sleep(pause)
        assert house.ok("DELETE", f"{CHATS}/{turn.chat_id}") is True
        return turn

    with ThreadPoolExecutor(4) as pool:
        turns = list(pool.map(one, [chance.uniform(0.0, 0.12) for _ in range(40)]))
    for turn in turns:
        assert house.tasks_of(turn) == []
        assert house.call("GET", f"{CHATS}/{turn.chat_id}")[0] == 404


def test_one_message_that_is_asked_for_many_times_at_once(house: House) -> None:
    turn = house.begin("echo", "the same")

    def ask(number: int) -> int:
        body = house.body(turn, "echo", session_id=f"s{number}")
        return house.call("POST", COMPLETIONS, body)[0]

    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(ask, range(48)))
    assert set(statuses) <= {200, 409}
    assert 200 in statuses
    message = house.finished(turn)
    assert (message["content"], message["done"], message.get("error")) == ("the same", True, None)


def test_a_client_that_saves_while_an_answer_is_given_loses_nothing_of_it(house: House) -> None:
    turn, task_id = house.ask("endless")
    house.wait_begun(turn)
    # What a page saves on its way: the tree, and a title.
    nodes = {turn.question: {"childrenIds": [turn.answer], "favorite": True}}
    chat = {"title": "Renamed", "history": {"currentId": turn.answer, "messages": nodes}}
    house.ok("POST", f"{CHATS}/{turn.chat_id}", {"chat": chat})
    house.ok("POST", f"{TASKS}/stop/{task_id}", {})
    record = house.ok("GET", f"{CHATS}/{turn.chat_id}")
    messages = record["chat"]["history"]["messages"]
    assert (record["title"], messages[turn.question]["favorite"]) == ("Renamed", True)
    assert (messages[turn.answer]["content"], messages[turn.answer]["done"]) == ("one two three", True)


@pytest.mark.parametrize("name", KINDS)
def test_a_pipe_that_does_not_let_go_is_left_behind(house: House, name: str) -> None:
    turn, task_id = house.ask(name)
    wait_until((house.folder / f"{turn.text}.begun").exists, "the pipe")
    # Nobody else waits for it.
    other, _ = house.ask("echo", "meanwhile")
    assert house.finished(other)["content"] == "meanwhile"
    assert house.ok("POST", f"{TASKS}/stop/{task_id}", {})["status"] is True
    assert house.tasks_of(turn) == []
    message = house.message(turn)
    assert (message["content"], message["done"]) == ("", True)


def test_a_listener_that_does_not_read_is_cut_off_and_the_others_hear_all(house: House) -> None:
    told = 300
    head = f"GET {EVENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.ann.token}\r\n\r\n"
    with connected(house.daemon.base_url) as deaf, house.listen() as stays:
        deaf.sendall(head.encode())
        begun = deaf.recv(65536)
        assert begun.startswith(b"HTTP/1.1 200")
        turn, _ = house.ask("loud", str(told))
        heard = [one for one in stays.wait_idle(turn.chat_id) if one.type == "own"]
        assert [one.payload["number"] for one in heard] == list(range(told))
        assert house.finished(turn)["content"] == "told"
        # Now it reads, gets what was on its way, and then the end.
        got = bytearray()
        while not got.endswith(b"\r\n0\r\n\r\n"):
            part = deaf.recv(1 << 20)
            assert part
            got += part
        assert len(got) < told * 100_000


def test_a_session_id_is_not_for_two(house: House) -> None:
    with house.listen() as one, house.listen() as other:
        assert one.opened["session_id"] != other.opened["session_id"]
        turn = house.begin("asks")
        body = house.body(turn, "asks", session_id=one.opened["session_id"])
        house.ok("POST", COMPLETIONS, body)
        call_id = one.wait_type("confirmation", turn.chat_id).data["call_id"]
        assert [frame.type for frame in other.of(turn.chat_id) if frame.type == "confirmation"] == []
        assert house.ok("POST", f"{EVENTS}/calls/{call_id}", {"result": True}) is True
    assert house.finished(turn)["content"] == "answer: True"


def test_calls_that_are_answered_by_several_at_once_get_one_answer(house: House) -> None:
    with house.listen() as listener:
        turn, _ = house.ask("asks")
        call_id = listener.wait_type("confirmation", turn.chat_id).data["call_id"]

        def answer(number: int) -> int:
            return house.call("POST", f"{EVENTS}/calls/{call_id}", {"result": number})[0]

        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(answer, range(24)))
    assert sorted(statuses) == [200] + [409] * 23
    assert house.finished(turn)["content"] == f"answer: {statuses.index(200)!r}"


def test_the_daemon_ends_although_a_plugin_does_not(tmp_path: Path) -> None:
    pipes = {"blocks_thread": BLOCKING.format(name="b", kind="def")}
    with opened_house(tmp_path, pipes=pipes, DRAIN_TIMEOUT="0.5") as house:
        turn, _ = house.ask("blocks_thread")
        wait_until((house.folder / f"{turn.text}.begun").exists, "the pipe")
        with house.listen() as listener:
            assert house.daemon.stop() == 0
            listener.wait_over()
        assert "Traceback" not in "".join(house.daemon.log)


def test_many_listeners_of_one_user_hear_the_same(house: House) -> None:
    listeners: list[Listener] = [house.listen() for _ in range(25)]
    try:
        turn, _ = house.ask("events", "10")
        heard = [listener.wait_idle(turn.chat_id) for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()
    assert all(one == heard[0] for one in heard)
    assert sum(one.type == "status" for one in heard[0]) == 10
