"""What befalls the daemon while streams are open in every dialect: a reload, a revoked key, a stop."""

import contextlib
import http.client
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.failing_provider_site import OpenStream, Site, configuration, make_key
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.model_requests import STREAMING, begun, stream_of
from tests.fakes.providers.questions import Question, failures, texts
from tests.fakes.providers.upstream import SILENCE, Reply

CASES = list(STREAMING.values())


@contextlib.contextmanager
def opened(folder: Path, **settings: str) -> Iterator[Site]:
    with background_upstream(kind=Everything) as provider:
        file = folder / "gatewayd.toml"
        file.touch(0o600)
        file.write_text(configuration(provider.url))
        with running_daemon(folder / "state", "-f", str(file), ENABLE_API_KEYS="true", **settings) as daemon:
            yield Site(daemon, provider, make_key(daemon))


@contextlib.contextmanager
def open_streams(site: Site, cases: Sequence[tuple[Question, str]] = CASES) -> Iterator[list[OpenStream]]:
    """Open a stream of each case at a patient provider that has said "one" and fallen silent."""
    with contextlib.ExitStack() as stack:
        streams = []
        for question, model in cases:
            first = begun(question, model)
            whole = b"".join(stream_of(question, model, ["one"]))
            site.provider.script(Reply(steps=[first, SILENCE, whole.removeprefix(first)]))
            streams.append(stack.enter_context(site.opened(question, f"p{model}")))
        yield streams


def assert_whole(streams: list[OpenStream]) -> None:
    for stream in streams:
        reply = stream.rest()
        assert texts(stream.question.dialect, reply) == "one"
        assert set(failures(stream.question.dialect, reply)) == {None}


def wait_closed(site: Site) -> None:
    """Wait until the daemon takes no more connections."""
    address = urlsplit(site.daemon.base_url)
    deadline = time.monotonic() + 10
    with contextlib.suppress(ConnectionRefusedError):
        while time.monotonic() < deadline:
            socket.create_connection((address.hostname, address.port or 0), timeout=5).close()
            time.sleep(0.02)
        raise AssertionError("the daemon still takes connections")


def test_a_stop_lets_open_streams_end(tmp_path: Path) -> None:
    with opened(tmp_path) as site, open_streams(site) as streams:
        site.daemon.process.send_signal(signal.SIGTERM)
        wait_closed(site)
        site.provider.release()
        assert_whole(streams)
        assert site.daemon.process.wait(timeout=20) == 0
        log = "".join(site.daemon.log)
        assert "Traceback" not in log
        assert " error " not in log


def test_a_stop_does_not_wait_for_ever(tmp_path: Path) -> None:
    with (
        opened(tmp_path, DRAIN_TIMEOUT="1", STREAM_HEAD_TIMEOUT="0.1") as site,
        open_streams(site) as streams,
        contextlib.ExitStack() as stack,
    ):
        awaited = []
        for question, model in CASES:
            if (question.dialect.name, model) != ("ollama", "l.m"):
                site.provider.script(Reply(before=SILENCE))
                awaited.append(stack.enter_context(site.opened(question, f"p{model}", b"")))
        began = time.monotonic()
        site.daemon.process.send_signal(signal.SIGTERM)
        assert site.daemon.process.wait(timeout=20) == 0
        assert time.monotonic() - began < 15
        for stream in awaited:
            # It had its head before its first event: the failure is in band.
            assert b"cannot get an answer: the gateway stops" in stream.rest().body, stream.question
        for stream in streams:
            # It was cut, so that no client takes it for whole.
            with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
                stream.answer.read()
        assert "Traceback" not in "".join(site.daemon.log)


def test_a_reload_lets_streams_of_changed_and_removed_providers_end(tmp_path: Path) -> None:
    with opened(tmp_path) as site, open_streams(site) as streams:
        file = tmp_path / "gatewayd.toml"
        changed = file.read_text().replace('prefix = "p', 'prefix = "q')
        file.write_text(changed.replace('key = "sk-upstream', 'key = "sk-other'))
        site.daemon.process.send_signal(signal.SIGHUP)
        site.daemon.wait_for("reloaded")
        question, model = CASES[0]
        gone = site.ask(question, f"p{model}", stream=False)
        assert gone.status == 404
        site.provider.script()
        fresh = site.ask(question, f"q{model}", stream=False)
        assert fresh.status == 200
        assert site.provider.last().headers["Authorization"].startswith("Bearer sk-other")
        site.provider.release()
        assert_whole(streams)
        site.assert_well()


def test_a_revoked_key_opens_nothing_more_and_cuts_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as site, open_streams(site) as streams:
        signed = {"Authorization": f"Bearer {site.key}"}
        keys = site.daemon.call("GET", "/api/v1/auths/api_keys", None, signed)[1]["keys"]
        path = f"/api/v1/auths/api_keys/{keys[0]['id']}"
        assert site.daemon.call("DELETE", path, None, signed)[0] == 200
        for question, model in CASES:
            refused = site.ask(question, model, stream=True)
            assert refused.status == 401
            assert question.dialect.failure(refused.json)
        site.provider.release()
        assert_whole(streams)


def test_reloads_in_the_middle_of_many_requests(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        file = tmp_path / "gatewayd.toml"
        good = file.read_text()
        for turn in range(6):
            file.write_text(good.replace("first_byte_timeout = 60", f"first_byte_timeout = {60 + turn}"))
            site.daemon.process.send_signal(signal.SIGHUP)
            for question, model in CASES:
                for name in (model, f"p{model}"):
                    reply = site.ask(question, name, stream=True)
                    assert reply.status == 200, reply
                    assert set(failures(question.dialect, reply)) == {None}
        site.assert_well()
