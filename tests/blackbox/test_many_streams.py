"""A thousand streams at once through the real daemon: no error, and no byte of one in another."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.bench.targets import check, prepared_gateway, running_mock
from tests.bench.tools import Work, build, running_load
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.failing_provider_site import make_key
from tests.fakes.providers.marked_streams import Marked, ask_marked, marked_body, running_marked
from tests.fakes.providers.questions import (
    CHAT,
    COMPLETION,
    MESSAGE,
    RUNTIME_CHAT,
    RUNTIME_GENERATE,
    failures,
    texts,
)

STREAMS = 1000
ROOT = Path(__file__).parents[2]
PROVIDERS = """
[[providers]]
name = "marked"
base_url = "{url}/v1"
"""
QUESTIONS = (CHAT, MESSAGE, RUNTIME_CHAT, RUNTIME_GENERATE, COMPLETION)


async def test_a_thousand_streams_in_all_dialects(tmp_path: Path) -> None:
    marked = Marked()
    with running_marked(marked) as url:
        file = tmp_path / "gatewayd.toml"
        file.write_text(PROVIDERS.format(url=url))
        with running_daemon(tmp_path / "s", "-f", str(file), ENABLE_API_KEYS="true") as daemon:
            key, port = make_key(daemon), urlsplit(daemon.base_url).port or 0
            asked = [(QUESTIONS[number % len(QUESTIONS)], f"m{number:05}x") for number in range(STREAMS)]
            works = [
                ask_marked(port, key, question.path, marked_body(question, "m", marker))
                for question, marker in asked
            ]
            replies = await asyncio.gather(*works)
            for (question, marker), reply in zip(asked, replies, strict=True):
                assert reply.status == 200, reply
                assert set(failures(question.dialect, reply)) == {None}
                assert texts(question.dialect, reply) == marked.text(marker)
            assert "Traceback" not in "".join(daemon.log)


@pytest.mark.real("cc")
def test_a_thousand_paced_chats(tmp_path: Path) -> None:
    """The load generator compares every byte of every chunk with the marker of its stream."""
    tools = build(tmp_path)
    with running_mock(tools, tmp_path) as mock:
        gateway = prepared_gateway("gateway", ROOT, mock, tmp_path / "s")
        with gateway.running() as (target, _):
            check(tools, target)
            work = Work("stream", "m-c50-i100", STREAMS, seconds=2.0, warm_up=0.0, chunks=50)
            with running_load(tools.load, work, target.port, target.path, target.key) as load:
                result = load.result()
            counts = target.counts()
    assert result["errors"] == 0, result
    assert result["all_ok"] >= STREAMS
    assert result["all_chunks"] >= STREAMS * 50
    assert counts is not None
    assert counts.requests >= STREAMS
    assert 0 <= counts.fast <= counts.requests
