"""Two or three real nodes on one PostgreSQL: killed and paused ones lose nothing and do nothing twice."""

import contextlib
import json
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewayd.storage.engine.location import parse
from tests.conftest import real_postgres
from tests.fakes.daemons.chat_site import COMPLETIONS, EVENTS, House, Turn, wait_until
from tests.fakes.daemons.nodes import (
    LEASE_SECONDS,
    Cluster,
    SlowServices,
    running_cluster,
    running_nodes,
    slow_services,
)
from tests.fakes.daemons.paused_processes import stopped
from tests.fakes.daemons.redis_server import RedisServer, redis_server
from tests.fakes.http.event_listener import Listener
from tests.fakes.http.multipart_forms import FORM, field, file_part, form
from tests.fakes.http.raw_http import send
from tests.fakes.providers.upstream import SILENCE, Reply, openai_chunk, openai_stream, sse
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.timeout(240)

BEGUN = sse(openai_chunk(content="Hello "))
REST = b"".join(openai_stream(["world"]))
DIED = "the gateway was restarted while this was answered"
RETURNED = "this node owned nothing for a while"
GAP_SECONDS = 3.0
"""How long after its return Redis tells of gaps: the pause after a failure, and some more."""

STORED = "SELECT 'stored ' || COUNT(*) FROM batch_answers"
"""Rows of answers of unfinished batches. The lines of the test are answered one at a time."""

TEXT = " ".join(f"word{number}" for number in range(2000))


@dataclass
class Pair:
    """Two nodes, and what they have in common."""

    cluster: Cluster
    postgres: Postgres
    address: str
    redis: RedisServer
    services: SlowServices

    @property
    def houses(self) -> tuple[House, House]:
        """Both nodes."""
        first, second = self.cluster.houses
        return first, second

    def query(self, sql: str) -> str:
        """Run one statement in the database."""
        name = parse(self.address).credentials["database"]
        return self.postgres.psql(f"\\c {name}\n{sql}")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Pair]:
    address = postgres.migrated_database()
    with slow_services() as services, redis_server() as redis:
        given = {"BATCH_PARALLEL_REQUESTS": "2", **services.settings}
        with running_cluster(tmp_path_factory.mktemp("n"), address, redis, **given) as cluster:
            cluster.add()
            cluster.add()
            yield Pair(cluster, postgres, address, redis, services)


@pytest.fixture
def pair(both: Pair) -> Pair:
    """Return two living nodes whose logs are empty, which have no other work than that of the test."""
    both.cluster.provider.release()
    both.cluster.revive()
    house = both.houses[0]
    wait_until(lambda: not house.ok("GET", "/api/tasks", None, house.admin)["tasks"], "the end of the work")
    both.cluster.provider.script()
    both.services.renew()
    for each in both.houses:
        each.assert_well()
        each.daemon.log.clear()
    return both


def hang(house: House) -> Any:
    """Begin an answer that waits for its provider."""
    house.provider.script(Reply(steps=[BEGUN, SILENCE, REST]))
    turn, task_id = house.ask()
    house.provider.wait_silent()
    return turn, task_id


def upload(house: House, text: str = TEXT) -> str:
    """Upload a text, and return the id of the file."""
    headers = {"Authorization": f"Bearer {house.ann.token}", "Content-Type": FORM}
    reply = send(house.daemon.base_url, "POST", "/api/v1/files/", form(file_part(text.encode())), headers)
    file_id: str = reply.json["id"]
    return file_id


def test_an_answer_of_a_killed_node_is_ended_by_another(pair: Pair) -> None:
    first, second = pair.houses
    turn, task_id = hang(first)
    other, _ = hang(second)
    assert list(second.tasks_of(turn)) == [task_id], "it is listed everywhere"
    assert second.message(turn)["done"] is False
    first.daemon.stop(signal.SIGKILL)
    died_at = time.monotonic()
    wait_until(lambda: second.message(turn)["done"], "the end of the answer", 15)
    assert time.monotonic() - died_at < 15
    message = second.message(turn)
    assert message["error"]["content"] == DIED
    assert list(second.tasks_of(turn)) == []
    # That of a living node goes on.
    assert second.message(other)["done"] is False
    second.provider.release()
    wait_until(lambda: second.message(other)["done"], "the end of the other answer")
    assert second.message(other)["content"] == "Hello world"
    second.assert_well()


def test_a_start_leaves_the_answers_of_other_nodes_alone(pair: Pair, tmp_path: Path) -> None:
    first, _ = pair.houses
    turn, _ = hang(first)
    with running_nodes(tmp_path, pair.address, 1, first.people) as _:
        time.sleep(LEASE_SECONDS + 1)
        assert first.message(turn)["done"] is False
    first.provider.release()
    wait_until(lambda: first.message(turn)["done"], "the end of the answer")
    assert first.message(turn)["content"] == "Hello world"


def test_another_node_stops_an_answer(pair: Pair) -> None:
    (first, second), redis = pair.houses, pair.redis
    turn, task_id = hang(first)
    stopped_at = time.monotonic()
    assert second.ok("POST", f"/api/tasks/stop/{task_id}")["status"] is True
    assert time.monotonic() - stopped_at < 5
    assert list(first.tasks_of(turn)) == []
    message = second.message(turn)
    assert (message["done"], message["content"]) == (True, "Hello")
    assert_call_is_answered_once(first, second)
    redis.stop()
    # Answers go on, and are stopped by the database.
    turn, task_id = hang(first)
    assert list(second.tasks_of(turn)) == [task_id]
    assert second.ok("POST", f"/api/tasks/stop/{task_id}")["status"] is True
    assert list(first.tasks_of(turn)) == []
    redis.start()
    wait_until(lambda: second.call("POST", f"{EVENTS}/ticket")[0] == 200, "Redis")
    assert_call_is_answered_once(second, first)
    first.assert_well()
    second.assert_well()


def listen_after_outages(house: House) -> Listener:
    """Listen as clients do, again when a node tells of a gap and ends the stream; return one that stays."""
    while True:
        listener = house.listen()
        with contextlib.suppress(AssertionError):
            listener.wait_over(GAP_SECONDS)
            listener.close()
            continue
        return listener


def assert_call_is_answered_once(first: House, second: House) -> None:
    """Let a plugin of one node ask a user who listens at the other, which shows and answers the call."""
    listener = listen_after_outages(second)
    turn, task_id = first.ask("asks")
    call_id = listener.wait_type("confirmation", turn.chat_id).data["call_id"]
    for house in (first, second):
        assert [call["call_id"] for call in house.ok("GET", f"{EVENTS}/calls")["calls"]] == [call_id]
        assert task_id in house.ok("GET", "/api/tasks", None, house.admin)["tasks"]
    path, answer = f"{EVENTS}/calls/{call_id}", {"result": "x" * (1 << 20)}
    assert second.call("POST", path, answer, second.bob)[0] == 404
    assert second.ok("POST", path, answer) is True
    wait_until(lambda: not first.tasks_of(turn), "the end of the answer")
    assert len(second.message(turn)["content"]) > 1 << 20
    # Late, and on both nodes.
    assert [house.call("POST", path, answer)[0] for house in (first, second)] == [409, 409]
    assert len([heard for heard in listener.of(turn.chat_id) if heard.type == "confirmation"]) == 1
    listener.close()


def test_a_message_that_two_nodes_answer_has_the_later_answer(pair: Pair) -> None:
    first, second = pair.houses
    turn, old = hang(first)
    second.provider.script(Reply(steps=[b"".join(openai_stream(["the later answer"]))]))
    second.start(turn)
    wait_until(lambda: old not in first.tasks_of(turn), "the end of the earlier run")
    wait_until(lambda: second.message(turn)["done"], "the answer")
    first.provider.release()
    time.sleep(1)
    message = first.message(turn)
    assert (message["done"], message["content"]) == (True, "the later answer")
    assert message.get("error") is None


def test_a_paused_node_that_comes_back_writes_nothing_into_the_answer(pair: Pair) -> None:
    first, second = pair.houses
    turn, _ = hang(first)
    with stopped(first.daemon.process.pid):
        wait_until(lambda: second.message(turn)["done"], "the end of the answer", 15)
        second.provider.script(Reply(steps=[b"".join(openai_stream(["the later answer"]))]))
        second.start(turn)
        wait_until(lambda: second.message(turn)["content"] == "the later answer", "the answer")
        first.provider.release()
    wait_until(lambda: RETURNED in "".join(first.daemon.log), "its return")
    time.sleep(2)
    message = first.message(turn)
    assert (message["done"], message["content"]) == (True, "the later answer")
    assert list(second.tasks_of(turn)) == []


def test_nodes_that_begin_one_message_at_once_store_one_answer(pair: Pair) -> None:
    houses = pair.houses
    for _ in range(8):
        turn = houses[0].begin()
        for number, house in enumerate(houses):
            house.provider.script(Reply(steps=[b"".join(openai_stream([f"answer {number}"]))]))
        with ThreadPoolExecutor() as pool:
            begun = list(pool.map(begin_again, houses, [turn, turn]))
        assert 200 in begun
        assert set(begun) <= {200, 409}
        wait_until(lambda: not houses[0].tasks_of(turn), "the end of the runs")  # noqa: B023
        message = houses[1].message(turn)
        assert message["done"] is True
        # Titles ask the provider as well, so that an answer may be the unscripted one.
        assert message["content"] in {"answer 0", "answer 1", "Hello from m"}


def begin_again(house: House, turn: Turn) -> int:
    """Begin the answer of a turn, and return the status."""
    status, _ = house.call("POST", COMPLETIONS, house.body(turn, session_id=f"api-{uuid.uuid4()}"))
    return status


def test_an_outage_of_the_database_that_is_longer_than_a_lease_ends_no_answer(tmp_path: Path) -> None:
    with (
        real_postgres(tmp_path) as server,
        running_nodes(tmp_path, server.migrated_database()) as (first, second),
    ):
        turns = [hang(house)[0] for house in (first, second)]
        server.shut_down()
        wait_until(lambda: first.daemon.call("GET", "/readyz")[0] == 503, "the outage", 30)
        time.sleep(LEASE_SECONDS + 1)
        server.start()
        for house in (first, second):
            wait_until(lambda: house.daemon.call("GET", "/readyz")[0] == 200, "the end", 30)  # noqa: B023
        time.sleep(LEASE_SECONDS + 1)
        for house, turn in zip((second, first), turns, strict=True):
            assert house.message(turn)["done"] is False
        first.provider.release()
        for turn in turns:
            wait_until(lambda: second.message(turn)["done"], "the answer", 30)  # noqa: B023
            assert second.message(turn)["content"] == "Hello world"


@pytest.mark.parametrize("fault", ["SIGSTOP", "SIGKILL"])
def test_a_file_of_a_silent_node_is_processed_by_another_and_once(pair: Pair, fault: str) -> None:
    (first, second), services = pair.houses, pair.services
    file_id = upload(first, f"{fault} {TEXT}")
    assert services.asked.wait(30)
    owner = pair.query("SELECT 'is ' || name FROM nodes JOIN ingest_jobs ON lease_owner = nodes.id")
    silent, other = (first, second) if "is node-0" in owner else (second, first)
    if fault == "SIGKILL":
        silent.daemon.stop(signal.SIGKILL)
        wait_completed(other, file_id)
    else:
        with stopped(silent.daemon.process.pid):
            wait_completed(other, file_id)
            services.released.set()
        wait_until(lambda: RETURNED in "".join(silent.daemon.log), "its return")
        time.sleep(2)
    count = pair.query(
        "SELECT 'passages ' || COUNT(*) || ' ' || COUNT(DISTINCT number) || ' ' || MAX(number) + 1 "
        f"FROM passages WHERE file_id = '{file_id}'"
    )
    [line] = [line for line in count.splitlines() if "passages" in line]
    _, passages, numbers, last = line.split()
    assert int(passages) == int(numbers) == int(last) > 5
    other.assert_well()


def test_a_batch_of_a_paused_node_goes_on_elsewhere(pair: Pair) -> None:
    """The line that it was running runs again; those with an answer do not, and each has one result."""
    first, second = pair.houses
    provider = first.provider
    provider.script(Reply(before=SILENCE, steps=[b"{}"]))
    batch = begin_batch(first, 3)
    provider.wait_silent(30)
    wait_until(lambda: "stored 2" in pair.query(STORED), "two answers", 30)
    owner = pair.query(
        "SELECT 'is ' || nodes.name FROM nodes JOIN leases ON node_id = nodes.id"
        " WHERE leases.name = 'batches'"
    )
    silent, other = (first, second) if "is node-0" in owner else (second, first)

    def shown() -> Any:
        return other.ok("GET", f"/v1/batches/{batch}")

    with stopped(silent.daemon.process.pid):
        wait_until(lambda: shown()["status"] == "completed", "the end of the batch", 30)
        done = shown()
        provider.release()
    wait_until(lambda: RETURNED in "".join(silent.daemon.log), "its return", 30)
    assert done["request_counts"] == {"total": 3, "completed": 3, "failed": 0}
    asked = [each.json["messages"][0]["content"] for each in provider.fake.requests if each.body]
    assert (len(asked), set(asked)) == (4, {"line 0", "line 1", "line 2"})
    path = f"/v1/files/{done['output_file_id']}/content"
    reply = send(other.daemon.base_url, "GET", path, b"", {"Authorization": f"Bearer {other.ann.token}"})
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert sorted(line["custom_id"] for line in lines) == ["c0", "c1", "c2"]
    assert silent.ok("GET", f"/v1/batches/{batch}") == shown() == done
    assert "stored 0" in pair.query(STORED)
    other.assert_well()


def begin_batch(house: House, count: int) -> str:
    """Submit a batch of chat requests, and return its id."""
    url = "/v1/chat/completions"
    lines = [
        {
            "custom_id": f"c{number}",
            "method": "POST",
            "url": url,
            "body": {"model": "o.m", "messages": [{"role": "user", "content": f"line {number}"}]},
        }
        for number in range(count)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    headers = {"Authorization": f"Bearer {house.ann.token}", "Content-Type": FORM}
    body = form(field("purpose", "batch"), file_part(content, "a.jsonl"))
    file = send(house.daemon.base_url, "POST", "/v1/files", body, headers).json
    wanted = {"input_file_id": file["id"], "endpoint": url, "completion_window": "24h"}
    batch_id: str = house.ok("POST", "/v1/batches", wanted)["id"]
    return batch_id


def wait_completed(house: House, file_id: str) -> None:
    def is_completed() -> bool:
        found = house.ok("GET", f"/api/v1/files/{file_id}/process/status")
        return bool(found["status"] == "completed")

    wait_until(is_completed, "the processed file", 30)


def test_limits_count_the_calls_of_all_nodes_together(pair: Pair) -> None:
    first, second = pair.houses

    def ask(house: House, who: Any) -> Any:
        body = {"model": "o.m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 40}
        return house.send("POST", "/v1/chat/completions", body, who)

    limits = "/api/v1/limits"
    made = first.ok("PUT", limits, {"user": first.bob.id, "requests_per_minute": 3}, first.admin)
    wait_until(lambda: ask(second, first.bob).headers.get("x-ratelimit-limit-requests"), "the limit")
    asked = [ask(house, first.bob).status for house in (first, second, first, second)]
    assert sum(status == 200 for status in asked) <= 2
    assert asked[-2:] == [429, 429]
    assert ask(first, first.ann).status == 200, "another user is not limited"
    first.ok("DELETE", f"{limits}/{made['id']}", None, first.admin)
    # One call at a time: a node is killed between reserving and settling.
    budget = {"user": first.ann.id, "parallel": 1, "budgets": ["100000tokens/month"]}
    held = first.ok("PUT", limits, budget, first.admin)
    hang(first)
    wait_until(lambda: ask(second, first.ann).status == 429, "the limit")
    first.daemon.stop(signal.SIGKILL)
    wait_until(lambda: ask(second, first.ann).status == 200, "the place of the dead node", 15)

    def budget_use() -> Any:
        uses = second.ok("GET", f"{limits}/own")["limits"][0]["uses"]
        return next(use for use in uses if use["what"] == "100000tokens/month")

    wait_until(lambda: not budget_use()["reserved"], "the end of the reservation", 15)
    second.ok("DELETE", f"{limits}/{held['id']}", None, second.admin)
    second.assert_well()
