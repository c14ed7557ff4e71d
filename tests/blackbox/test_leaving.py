"""Clients that leave while the provider is silent: its connection is closed within a second, on every row."""

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.fakes.daemons.failing_provider_site import Site, opened_faulty
from tests.fakes.providers.model_requests import STREAMING, WHOLE, begun
from tests.fakes.providers.questions import Question
from tests.fakes.providers.upstream import SILENCE, Reply, ndjson


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_faulty(tmp_path_factory.mktemp("s")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(site: Site) -> Iterator[None]:
    """After each test the daemon is well, and whoever left is not in its log as a failure."""
    with site.tended():
        yield
    assert " error " not in "".join(site.daemon.log)


@contextlib.contextmanager
def asking(site: Site, path: str, body: bytes, method: str = "POST") -> Iterator[http.client.HTTPConnection]:
    """Ask, wait until the provider falls silent, and leave at the end of the block."""
    connection = http.client.HTTPConnection(urlsplit(site.daemon.base_url).netloc, timeout=20)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {site.key}", "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        site.provider.wait_silent()
        yield connection


def leave(site: Site, path: str, body: bytes, *, read: bytes = b"", method: str = "POST") -> None:
    with asking(site, path, body, method) as connection:
        if read:
            got = b""
            answer = connection.getresponse()
            assert answer.status == 200
            while read not in got:
                part = answer.read1(65536)
                assert part, got
                got += part
        assert not site.provider.fake.closed.is_set()
    site.provider.wait_closed(1.0)


@pytest.mark.parametrize(("question", "model"), STREAMING.values(), ids=STREAMING)
@pytest.mark.parametrize("moment", ["before the head", "before the first byte", "in the middle"])
def test_leaving_a_stream(site: Site, question: Question, model: str, moment: str) -> None:
    first = begun(question, model)
    silences = {
        "before the head": Reply(before=SILENCE),
        "before the first byte": Reply(steps=[SILENCE]),
        "in the middle": Reply(steps=[first, SILENCE]),
    }
    site.provider.script(silences[moment])
    read = b"one" if moment == "in the middle" else b""
    leave(site, question.path, question.asked(f"p{model}", stream=True), read=read)


@pytest.mark.parametrize(("question", "model"), WHOLE.values(), ids=WHOLE)
def test_leaving_before_a_whole_answer(site: Site, question: Question, model: str) -> None:
    site.provider.script(Reply(before=SILENCE))
    leave(site, question.path, question.asked(f"p{model}", stream=False))


TRANSFERS: dict[str, Any] = {
    "/ollama/api/pull": {"model": "pl.new"},
    "/ollama/api/push": {"model": "pl.m"},
    "/ollama/api/create": {"model": "pl.new", "from": "pl.m"},
}


@pytest.mark.parametrize("path", TRANSFERS)
def test_leaving_a_transfer(site: Site, path: str) -> None:
    site.provider.script(Reply(steps=[ndjson({"status": "one"}), SILENCE]))
    leave(site, path, json.dumps(TRANSFERS[path]).encode(), read=b"one")


def test_leaving_many_embeddings_closes_every_batch(site: Site) -> None:
    body = json.dumps({"model": "po.m", "input": ["x"] * 300}).encode()
    site.provider.script(*[Reply(before=SILENCE)] * 5)
    leave(site, "/v1/embeddings", body)
    # A batch that had not begun is not sent any more.
    # A list of models may be due meanwhile.
    assert len([each for each in site.provider.fake.requests if each.method == "POST"]) <= 4
