"""What failures of foreign code are read as."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.runtime.invoke import (
    FailureDetails,
    PluginError,
    read_failure,
    run_guarded,
    run_guarded_async,
)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_everything_that_is_raised_is_an_outcome(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    assert isinstance(run_guarded(fail).error, error)
    assert isinstance((await run_guarded_async(fail_later)).error, error)
    assert run_guarded(lambda: 3).value == 3


async def test_being_cancelled_goes_through_and_a_cancellation_of_its_own_does_not() -> None:
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    assert isinstance((await run_guarded_async(cancel_itself)).error, asyncio.CancelledError)
    task = asyncio.ensure_future(run_guarded_async(asyncio.Event().wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class HTTPException(Exception):  # noqa: N818 - as starlette calls it
    def __init__(self, status_code: object, detail: object) -> None:
        self.status_code = status_code
        self.detail = detail


class Kin(HTTPException):
    pass


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (ValueError("bad"), FailureDetails("bad", "ValueError")),
        (ValueError(), FailureDetails("", "ValueError")),
        (Kin(403, "no"), FailureDetails("no", "Kin", 403)),
        (HTTPException(400, {"a": 1}), FailureDetails("{'a': 1}", "HTTPException", 400)),
        (
            GatewayError(ErrorKind.NOT_FOUND, "cannot find it", code="c"),
            FailureDetails("cannot find it", code="c"),
        ),
        (
            GatewayError(ErrorKind.UNAVAILABLE, "cannot reach it", retry_after=1),
            FailureDetails("cannot reach it", status=503, retry_after=1),
        ),
    ],
)
def test_failures_are_read(error: BaseException, failed: FailureDetails) -> None:
    assert read_failure(error) == failed


def test_an_http_exception_that_cannot_be_read_is_like_any_other() -> None:
    class HTTPException(Exception):  # noqa: N818 - found by its name
        @property
        def status_code(self) -> int:
            raise ValueError("no status")

    assert read_failure(HTTPException("text")) == FailureDetails("text", "HTTPException")


def test_an_odd_status_is_none() -> None:
    assert read_failure(HTTPException("x", "d")).status is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12),
        ({"retry-after": 3}, 3),
        ({"Retry-After": "soon"}, None),
        (None, None),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_from_the_headers(headers: object, seconds: int | None) -> None:
    error = HTTPException(429, "slowly")
    error.headers = headers  # type: ignore[attr-defined]
    failed = read_failure(error)
    assert failed.retry_after == seconds
    assert PluginError("filter", "p", failed).retry_after == seconds


def test_a_long_text_is_cut() -> None:
    assert len(read_failure(ValueError("x" * 10_000)).text) < 5000


def test_the_line_is_the_last_in_the_plugins_own_source() -> None:
    source = compile("def f():\n    return int('x')\n\nf()\n", "p.py", "exec")
    outcome = run_guarded(lambda: exec(source, {}))
    assert outcome.error is not None
    assert read_failure(outcome.error, "p.py").line == 2
    assert read_failure(outcome.error, "other.py").line is None


def test_a_failure_is_a_sentence_of_kind_id_type_and_text() -> None:
    failure = PluginError("filter", "p", FailureDetails("bad", "ValueError", 418, 7))
    assert failure.kind is ErrorKind.PLUGIN_FAILED
    assert failure.message == "filter p: ValueError: bad"
    assert (failure.plugin_id, failure.text, failure.status, failure.line) == ("p", "bad", 418, 7)
    assert PluginError("filter", "p", FailureDetails("", "KeyError")).message == "filter p: KeyError"
    assert PluginError("filter", "p", FailureDetails("late")).message == "filter p: late"


def test_a_failure_that_comes_through_other_plugins_names_each_once() -> None:
    inner = PluginError("pipe", "b", FailureDetails("bad", "ValueError"))
    outer = PluginError("pipe", "a", read_failure(inner))
    assert (outer.message, outer.text) == ("pipe a: pipe b: ValueError: bad", "pipe b: ValueError: bad")
    assert read_failure(inner).sentence == "pipe b: ValueError: bad"
    for plugin_id in "baabb":
        outer = PluginError("pipe", plugin_id, read_failure(outer))
    assert outer.message == "pipe b: pipe a: ValueError: bad"
    assert PluginError("filter", "f", read_failure(outer)).text == outer.message
