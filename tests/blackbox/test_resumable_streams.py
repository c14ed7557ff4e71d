"""Streams and replies that the death of the daemon neither takes from their callers nor gives to others."""

import http.client
import json
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from gatewayd.resumption.service import WRITE_PAUSE_SECONDS
from tests.fakes.daemons.chat_site import AUTHS, House, Person, living
from tests.fakes.http.raw_http import Reply as Answer
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, openai_chunk, openai_stream, sse
from tests.fakes.storage.postgres import Postgres

WORDS = [sse(openai_chunk(content=word)) for word in ("Hello", " there")]
REST = b"".join(openai_stream(["!"]))
RESUMABLE = {"X-Gateway-Stream": "resumable"}
ASKED = {"model": "o.m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
USERS = "/api/v1/users"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with background_upstream() as made:
        yield made


def ask_and_leave(house: House) -> tuple[str, bytes]:
    """Ask as ann, read up to the second word and leave; return the id of the stream and what was read."""
    house.provider.script(Reply(steps=[*WORDS, SILENCE, REST]))
    host = house.daemon.base_url.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=30)) as line:
        headers = {
            "Authorization": f"Bearer {house.ann.token}",
            "Content-Type": "application/json",
            **RESUMABLE,
        }
        line.request("POST", "/v1/chat/completions", json.dumps(ASKED), headers)
        reply = line.getresponse()
        assert reply.status == 200
        data = b""
        while b" there" not in data:
            data += reply.readline()
        return reply.headers["X-Gateway-Stream-Id"], data + reply.readline()


def read(house: House, stream_id: str, who: Person | None = None, after: int = 0, **headers: str) -> Answer:
    sent = {"Last-Event-ID": str(after), **headers}
    return house.send("GET", f"/v1/streams/{stream_id}", {}, who or house.ann, **sent)


def error_of(frame: bytes) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(frame.partition(b"data: ")[2])["error"]
    return error


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    postgres: Postgres = request.getfixturevalue("postgres")
    return {"DATABASE_URL": postgres.migrated_database()}


def test_killed_daemon_loses_no_stored_event_and_no_reply(
    tmp_path: Path, provider: Provider, settings: dict[str, str]
) -> None:
    settings = {**settings, "BYPASS_MODEL_ACCESS_CONTROL": "true", "DRAIN_TIMEOUT": "0.1"}
    once = {"Idempotency-Key": "once"}
    with living(tmp_path, provider, **settings) as house:
        whole = house.send("POST", "/v1/chat/completions", ASKED, house.ann, **RESUMABLE)
        whole_id = whole.headers["x-gateway-stream-id"]
        key = house.send("POST", f"{AUTHS}/api_key", {"name": "k"}, house.ann, **once)
        assert (whole.status, key.status) == (200, 200)
        cut_id, seen = ask_and_leave(house)
        time.sleep(2 * WRITE_PAUSE_SECONDS)
        assert house.daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        people = house.people
    provider.release()
    with living(tmp_path, provider, people, **settings) as house:
        assert read(house, whole_id).body == whole.body
        assert read(house, whole_id, house.bob).status == 404
        replay = read(house, cut_id)
        events = replay.body.split(b"\n\n")
        assert b"\n\n".join(events[:2]) + b"\n\n" == seen
        assert error_of(events[2])["code"] == "stream_interrupted"
        assert read(house, cut_id, after=1).body == b"\n\n".join(events[1:])
        again = house.send("POST", f"{AUTHS}/api_key", {"name": "k"}, house.ann, **once)
        assert (again.body, again.headers["idempotent-replayed"]) == (key.body, "true")
        # A stop cuts the answer, and says so in the stream.
        stopped_id, seen = ask_and_leave(house)
        assert house.daemon.stop() == 0
    provider.release()
    with living(tmp_path, provider, people, **settings) as house:
        replay = read(house, stopped_id)
        assert replay.body.startswith(seen)
        assert error_of(replay.body.split(b"\n\n")[-2])["code"] == "stream_interrupted"
        house.ok("POST", f"{USERS}/{house.ann.id}/update", {"role": "pending"}, house.admin)
        assert read(house, stopped_id).status in {401, 403}
        house.assert_well()


def test_official_client_reads_a_resumable_stream_and_repeats_a_request(
    tmp_path: Path, provider: Provider
) -> None:
    provider.script()
    with living(tmp_path, provider, BYPASS_MODEL_ACCESS_CONTROL="true") as house:
        client = openai.OpenAI(base_url=f"{house.daemon.base_url}/v1", api_key=house.ann.key, max_retries=0)
        with client:
            headers = {**RESUMABLE, "Idempotency-Key": "stainless-python-retry-1"}
            texts, ids = [], set()
            for _ in range(2):
                raw = client.chat.completions.with_raw_response.create(**ASKED, extra_headers=headers)
                chunks = [chunk for chunk in raw.parse() if chunk.choices]
                texts.append("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
                ids.add(raw.headers["X-Gateway-Stream-Id"])
            assert texts == ["Hello from m"] * 2
            assert len(ids) == 1
            with pytest.raises(openai.UnprocessableEntityError) as caught:
                client.chat.completions.create(**{**ASKED, "seed": 1}, extra_headers=headers)
            assert caught.value.code == "idempotency_key_reused"
