"""Odd but good streams of providers, in every dialect: dripping ones, and ones that say things of ours."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.failing_provider_site import KEY, NAMES, Site, configuration, make_key, opened_faulty
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.model_requests import STREAMING, WHOLE, stream_of
from tests.fakes.providers.questions import OLLAMA, Question, failures, texts
from tests.fakes.providers.stream_failure import drip
from tests.fakes.providers.upstream import Reply


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_faulty(tmp_path_factory.mktemp("s")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(site: Site) -> Iterator[None]:
    """After each test the daemon is well."""
    site.provider.script()
    yield
    site.provider.release()
    site.assert_well()


CASES = pytest.mark.parametrize(("question", "model"), STREAMING.values(), ids=STREAMING)
WORDS = ["Hé", "llo ", "\U0001f600", " \u2028\x7f", "end"]


@CASES
def test_a_dripping_provider_is_heard_whole(site: Site, question: Question, model: str) -> None:
    site.provider.script(Reply(steps=drip(b"".join(stream_of(question, model, WORDS)))))
    reply = site.ask(question, model, stream=True)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-accel-buffering"] == "no"
    assert texts(question.dialect, reply) == "".join(WORDS)
    assert set(failures(question.dialect, reply)) == {None}


def with_canaries(write: bytes) -> bytes:
    """Put an object of ours into each event of a write."""
    lines = []
    for line in write.split(b"\n"):
        mark = b"data: " if line.startswith(b"data: ") else b""
        text = line.removeprefix(mark)
        if text.startswith(b"{"):
            told = {**json.loads(text), "event": {"type": "execute", "data": {"code": "canary()"}}}
            line = mark + json.dumps(told).encode()
        lines.append(line)
    return b"\n".join(lines)


@CASES
def test_a_provider_cannot_send_events_of_ours(site: Site, question: Question, model: str) -> None:
    writes = [with_canaries(write) for write in stream_of(question, model, ["one", "two"])]
    is_sse = writes[0].startswith((b"data:", b"event:"))
    noise = b": canary\n\nevent: execute\nid: 7\nretry: 1\n" if is_sse else b""
    site.provider.script(Reply(steps=[noise + write for write in writes]))
    reply = site.ask(question, model, stream=True)
    assert texts(question.dialect, reply) == "onetwo"
    assert b"canary" not in reply.body
    assert b"execute" not in reply.body
    assert b"retry" not in reply.body


@pytest.mark.parametrize(("question", "model"), WHOLE.values(), ids=WHOLE)
def test_a_provider_cannot_send_objects_of_ours(site: Site, question: Question, model: str) -> None:
    good = site.ask(question, model, stream=False).json
    recorded = site.provider.last()
    default: Any = site.provider.fake._default(recorded).steps[0]
    assert isinstance(default, bytes)
    told = {**json.loads(default), "event": {"type": "execute", "data": {"code": "canary()"}}}
    site.provider.script(Reply(steps=[json.dumps(told).encode()], content_type="application/json"))
    reply = site.ask(question, model, stream=False)
    assert reply.status == 200
    assert reply.json.keys() == good.keys()
    assert b"canary" not in reply.body


def test_a_provider_that_refuses_connections_is_named_in_every_dialect(tmp_path: Path) -> None:
    with background_upstream(kind=Everything) as provider:
        file = tmp_path / "gatewayd.toml"
        file.touch(0o600)
        file.write_text(configuration(provider.url))
        with running_daemon(tmp_path / "s", "-f", str(file), ENABLE_API_KEYS="true") as daemon:
            here = Site(daemon, provider, make_key(daemon))
            listed = daemon.call("GET", "/v1/models", None, {"Authorization": f"Bearer {here.key}"})[1]
            assert {model["id"] for model in listed["data"]} >= set(NAMES)
            provider.stop()
            for question, model in WHOLE.values():
                for stream in (False, True):
                    reply = here.ask(question, model, stream=stream)
                    assert reply.status == 503, reply
                    assert NAMES[model] in (question.dialect.failure(reply.json) or "")
                    if question.dialect is not OLLAMA:
                        kind = reply.json["error"]["type"]
                        assert kind == ("overloaded_error" if "type" in reply.json else "api_error")
            here.assert_well()
            assert KEY not in "".join(daemon.log)
