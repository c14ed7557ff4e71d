"""Answers that end while the database is away: listeners hear at once, and it has them when it is back."""

import json
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.pipeline.runs.executor import GATEWAY_STOPPED
from tests.conftest import real_postgres
from tests.fakes.daemons.chat_site import CHATS, House, Turn, living, wait_until
from tests.fakes.daemons.disks import fill, small_disk
from tests.fakes.daemons.paused_processes import stopped
from tests.fakes.http.event_listener import Listener
from tests.fakes.http.raw_http import send
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, openai_chunk, openai_stream, sse
from tests.fakes.storage.migrated import NAME
from tests.fakes.storage.postgres import Postgres
from tests.test_stopping_documented import stop_margin

pytestmark = pytest.mark.faults

LONG = "word " * 200_000
"""More than a database has room for that was not to grow."""

BEGUN = sse(openai_chunk(content="Hello "))
REST = b"".join(openai_stream([LONG, "end"]))
BROKEN = sse({"error": {"message": "it broke"}})
FAILURE = "cannot get an answer from provider 'hosted': it reported: it broke"
SECONDS = 40.0
STATUS = {"type": "status", "data": {"description": "from outside", "done": True}}

Outage = Callable[[], AbstractContextManager[None]]


def begin(house: House, rest: bytes) -> Turn:
    """Begin an answer that goes on when the provider is released."""
    house.provider.script(Reply(steps=[BEGUN, SILENCE, rest]))
    turn, _ = house.ask()
    house.provider.wait_silent()
    return turn


def told(listener: Listener, turn: Turn, is_it: Callable[[Any], bool]) -> Any:
    """Wait until something is told of a turn, and return what."""

    def found() -> list[Any]:
        payloads = [(one.type, one.payload) for one in listener.of(turn.chat_id)]
        return [payload for kind, payload in payloads if is_it((kind, payload))]

    listener.wait(lambda _: bool(found()), "the end of the answer", SECONDS)
    return found()[0]


def is_done(event: Any) -> bool:
    return event[0] == "chat:completion" and event[1].get("done") is True


def is_error(event: Any) -> bool:
    return event[0] == "chat:message:error"


def report(house: House, turn: Turn) -> tuple[int, str]:
    """Send an event as an external tool does; return the status and when to come again."""
    headers = {"Authorization": f"Bearer {house.ann.token}", "Content-Type": "application/json"}
    path = f"{CHATS}/{turn.chat_id}/messages/{turn.answer}/event"
    reply = send(house.daemon.base_url, "POST", path, json.dumps(STATUS).encode(), headers)
    return reply.status, reply.headers.get("retry-after", "")


def through(house: House, outage: Outage) -> None:
    """Let an answer and a failure end in an outage, and read both when it is over."""
    with house.listen() as listener:
        failing = begin(house, BROKEN)
        answering = begin(house, REST)
        with outage():
            house.provider.release()
            assert told(listener, answering, is_done)["content"] == f"Hello {LONG}end"
            assert told(listener, failing, is_error) == {"error": {"content": FAILURE}}
            status, again = report(house, answering)
            assert (status, again.isdecimal()) == (503, True)
        wait_until(lambda: house.call("GET", "/readyz")[0] == 200, "the database", SECONDS)
        wait_until(lambda: house.message(answering).get("done") is True, "the answer", SECONDS)
        answer, failure = house.finished(answering), house.finished(failing)
        assert (answer["content"], answer.get("error")) == (f"Hello {LONG}end", None)
        assert "statusHistory" not in answer
        assert (failure["content"], failure["done"]) == ("Hello", True)
        assert failure["error"] == {"content": FAILURE}
        assert report(house, answering)[0] == 200
    shown = house.daemon.run_ctl("chat", "export", answering.chat_id).stdout
    assert json.dumps(f"Hello {LONG}end") in shown
    house.assert_well()


@contextmanager
def house_of(folder: Path, **settings: str) -> Iterator[House]:
    with background_upstream() as provider, living(folder, provider, **settings) as house:
        yield house


@contextmanager
def full(state: Path) -> Iterator[None]:
    fill(state / "ballast", 0)
    yield
    (state / "ballast").unlink()


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Hold the lock on writes to the database, as another program would."""
    with closing(sqlite3.connect(state / NAME)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def shut_down(server: Postgres) -> Iterator[None]:
    server.shut_down()
    yield
    server.start()


@contextmanager
def hanging(server: Postgres) -> Iterator[None]:
    """Stop every process of a server, which then takes what is sent and answers nothing."""
    postmaster = server.server._postmaster_info.process.pid
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    with stopped(postmaster, *map(int, children)):
        yield


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder of a daemon on a small disk of its own."""
    (tmp_path / "s").mkdir()
    with small_disk(tmp_path / "s", "24m"):
        yield tmp_path


@pytest.mark.short
def test_answers_that_end_on_a_full_disk(disk: Path) -> None:
    with house_of(disk) as house:
        through(house, lambda: full(disk / "s"))


def test_answers_that_end_while_the_database_is_locked(tmp_path: Path) -> None:
    with house_of(tmp_path) as house:
        through(house, lambda: locked(tmp_path / "s"))


@pytest.fixture
def server() -> Iterator[Postgres]:
    """Start a server that a test may do anything to, whose own user must reach its folder."""
    with tempfile.TemporaryDirectory() as folder, real_postgres(Path(folder)) as made:
        yield made


@pytest.mark.parametrize("outage", [pytest.param(shut_down, marks=pytest.mark.short), hanging])
def test_answers_that_end_without_postgresql(
    tmp_path: Path, server: Postgres, outage: Callable[[Postgres], AbstractContextManager[None]]
) -> None:
    with house_of(tmp_path, DATABASE_URL=server.create_database()) as house:
        through(house, lambda: outage(server))


def stop_in(house: House, outage: Outage) -> None:
    """Stop a daemon in an outage: it ends well and in time, and names what it loses."""
    turn = begin(house, REST)
    with house.listen() as listener, outage():
        house.provider.release()
        told(listener, turn, is_done)
        assert house.daemon.stop(signal.SIGTERM) == 0
    lost = [line for line in house.daemon.log if "a write to a message is lost" in line]
    assert [turn.chat_id in line and turn.answer in line for line in lost] == [True]


def test_a_stop_on_a_full_disk(disk: Path) -> None:
    with house_of(disk, DRAIN_TIMEOUT="2") as house:
        stop_in(house, lambda: full(disk / "s"))


def test_a_stop_of_many_answers_while_the_database_is_locked(tmp_path: Path) -> None:
    """Each write waits 5 seconds for the lock, one behind the other: a stop does not wait for them all."""
    with house_of(tmp_path, DRAIN_TIMEOUT="1") as house:
        for turn in [house.ask("endless")[0] for _ in range(15)]:
            house.wait_begun(turn)
        with locked(tmp_path / "s"):
            began = time.monotonic()
            assert house.daemon.stop(signal.SIGTERM) == 0
        assert time.monotonic() - began < 1 + stop_margin()


@pytest.mark.parametrize("outage", [shut_down, hanging])
def test_a_stop_without_postgresql(
    tmp_path: Path, server: Postgres, outage: Callable[[Postgres], AbstractContextManager[None]]
) -> None:
    with house_of(tmp_path, DATABASE_URL=server.create_database(), DRAIN_TIMEOUT="2") as house:
        stop_in(house, lambda: outage(server))


@pytest.mark.faults
def test_answers_that_are_given_up_while_another_writes_are_kept(tmp_path: Path) -> None:
    with background_upstream() as provider:
        with living(tmp_path, provider, DRAIN_TIMEOUT="0.5") as house:
            turn, people = begin(house, REST), house.people
            with locked(tmp_path / "s"):
                house.daemon.process.send_signal(signal.SIGTERM)
                house.daemon.wait_for("the database did not answer in time")
                time.sleep(1)
            assert house.daemon.stop(signal.SIGTERM) == 0
            assert "is lost" not in "".join(house.daemon.log)
        with living(tmp_path, provider, people) as house:
            kept = house.message(turn)
    assert (kept["content"], kept["done"], kept["error"]) == ("Hello", True, {"content": GATEWAY_STOPPED})
