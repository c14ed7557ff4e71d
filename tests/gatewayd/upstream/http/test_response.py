import asyncio
import math

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.errors import TransportError
from gatewayd.upstream.http.response import DRAIN_SECONDS, READ_AHEAD_BYTES, ProviderResponse, ResponseHeaders
from gatewayd.upstream.sources.config import UpstreamTimeouts

TIMEOUTS = UpstreamTimeouts(connect=5, first_byte=30, idle=20)


class Recorder:
    """A carrier that notes what it is told."""

    def __init__(self):
        self.dues: list[float] = []
        self.is_paused = False
        self.said: list[str] = []

    def arm(self, due):
        self.dues.append(due)

    def resume(self):
        self.said.append("resume")

    def drop(self):
        self.said.append("drop")


@pytest.fixture
async def carrier():
    return Recorder()


@pytest.fixture
async def response(carrier):
    made = ProviderResponse(TIMEOUTS, asyncio.get_running_loop())
    made.carrier = carrier
    return made


def waiting(work) -> asyncio.Task:
    return asyncio.create_task(work)


def test_headers():
    raw = [(b"Content-Type", b"a/b "), (b"X", b"1"), (b"x", b"2"), (b"E", b"")]
    headers = ResponseHeaders(raw)
    assert headers["content-TYPE"] == "a/b"
    assert (headers["X"], headers["e"]) == ("1", "")
    assert (list(headers), len(headers)) == (["content-type", "x", "e"], 3)
    assert "Content-Type" in headers
    assert "Contenttype" not in headers
    assert headers.get("ünïcode☃") is None
    with pytest.raises(KeyError):
        headers["Y"]


@pytest.mark.parametrize(
    ("raw", "ends"),
    [
        ([], True),
        ([(b"content-LENGTH", b"3")], False),
        ([(b"Transfer-Encoding", b"chunked")], False),
        ([(b"transfer-encoding", b"gzip, Chunked ")], False),
        ([(b"Transfer-Encoding", b"gzip")], True),
        ([(b"Transfer-Encoding", b"chunked"), (b"Transfer-Encoding", b"gzip")], True),
    ],
)
async def test_where_the_body_ends(response, raw, ends):
    response.begin(200, raw)
    assert response.ends_with_connection is ends


async def test_the_wait_for_the_head_begins_when_the_request_is_sent():
    loop = asyncio.get_running_loop()
    for timeouts, wait in [(TIMEOUTS, 30), (UpstreamTimeouts(total=3), 3)]:
        before = loop.time()
        response = ProviderResponse(timeouts, loop)
        assert (response.due == math.inf) is (timeouts.total is None)
        response.sent()
        assert before + wait <= response.due <= loop.time() + wait
        assert response.overdue(response.due) == f"no first byte within {wait} s"


async def test_how_long_the_next_bytes_may_take(response, carrier):
    loop = asyncio.get_running_loop()
    response.begin(200, [])
    for allowed in (30, 20, 20):
        before = loop.time()
        task = waiting(response.read_some())
        await asyncio.sleep(0)
        assert before + allowed <= carrier.dues[-1] <= loop.time() + allowed
        assert response.overdue(loop.time()) == f"it was silent for {allowed} s"
        response.add(b"x")
        response.wake()
        assert carrier.dues[-1] == math.inf  # nobody waits now
        assert await task == b"x"


async def test_a_wait_for_the_whole_begins_anew_with_every_part(response, carrier):
    loop = asyncio.get_running_loop()
    response.begin(200, [])
    task = waiting(response.read(100))
    await asyncio.sleep(0)
    for _ in range(3):
        response.add(b"x")
        before = loop.time()
        response.wake()
        assert before + 20 <= carrier.dues[-1] <= loop.time() + 20
    response.end()
    response.wake()
    assert await task == b"xxx"


async def test_nothing_waits_beyond_the_total(carrier):
    loop = asyncio.get_running_loop()
    response = ProviderResponse(UpstreamTimeouts(total=3), loop)
    end = response.due
    response.carrier = carrier
    response.begin(200, [])
    task = waiting(response.read_some())
    await asyncio.sleep(0)
    response.add(b"x")
    response.wake()
    await task
    assert carrier.dues == [end, end]
    assert response.overdue(end) == "the answer took too long"


async def test_when_reading_should_stop(response):
    response.begin(200, [])
    assert not response.add(b"x" * READ_AHEAD_BYTES)
    assert response.add(b"x")
    assert len(await response.read_some()) == READ_AHEAD_BYTES + 1
    assert not response.add(b"x")


async def test_reading_does_not_stop_while_the_whole_is_awaited(response, carrier):
    response.begin(200, [])
    task = waiting(response.read(READ_AHEAD_BYTES * 3))
    await asyncio.sleep(0)
    assert not response.add(b"x" * READ_AHEAD_BYTES * 2)
    assert not response.add(b"x" * READ_AHEAD_BYTES)
    assert response.add(b"x")
    response.wake()
    with pytest.raises(TransportError, match="its answer is over 196608 bytes"):
        await task
    assert carrier.said[-1] == "drop"


async def test_the_exact_limit(response):
    response.begin(200, [])
    response.add(b"x" * 10)
    response.end()
    assert await response.read(10) == b"x" * 10


async def test_what_came_is_taken_before_the_failure(response):
    response.begin(200, [])
    response.add(b"a")
    response.add(b"b")
    response.fail(ErrorKind.UPSTREAM_FAILED, "cut")
    assert await response.read_some() == b"ab"
    with pytest.raises(TransportError, match="cut"):
        await response.read_some()


async def test_a_whole_that_was_cut_is_a_failure(response):
    response.begin(200, [])
    response.add(b"a")
    response.fail(ErrorKind.UPSTREAM_FAILED, "cut")
    with pytest.raises(TransportError, match="cut"):
        await response.read(10)


async def test_finish_throws_away_what_comes_and_waits_for_the_end_alone(response, carrier):
    loop = asyncio.get_running_loop()
    response.begin(200, [])
    response.add(b"a")
    before = loop.time()
    task = waiting(response.finish())
    await asyncio.sleep(0)
    for _ in range(3):
        assert not response.add(b"x" * READ_AHEAD_BYTES)
        assert response._parts == []
        response.wake()
    assert max(carrier.dues) <= loop.time() + DRAIN_SECONDS
    assert min(carrier.dues) >= before + DRAIN_SECONDS
    assert not task.done()
    response.end()
    response.wake()
    await task
    assert "drop" not in carrier.said
    assert await response.read_some() == b""


async def test_a_cancelled_reader_drops_the_connection(response, carrier):
    response.begin(200, [])
    for read in (response.read_some(), response.read(10), response.finish()):
        response.carrier = carrier
        response.is_over = False
        carrier.said.clear()
        task = waiting(read)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert carrier.said == ["resume", "drop"] or carrier.said == ["drop"]


async def test_closing_twice_drops_once(response, carrier):
    response.close()
    response.close()
    assert carrier.said == ["drop"]


async def test_closing_a_whole_answer_drops_nothing(response, carrier):
    response.begin(200, [])
    response.add(b"a")
    response.end()
    response.close()
    assert carrier.said == []
    assert await response.read_some() == b""
