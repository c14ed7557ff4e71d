import asyncio
import errno
import time

import pytest

from gatewayd.observe.loop import LoopErrors, StallMonitor


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_reports_over_the_limit_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    handler = LoopErrors(limit=2, window=10, clock=clock)
    loop = asyncio.get_running_loop()
    for _ in range(1000):
        handler(loop, {"message": "accept failed", "exception": OSError(errno.EMFILE, "Too many open files")})
    assert len(caplog.records) == 2
    clock.now += 10
    handler(loop, {"message": "accept failed", "exception": OSError(errno.EMFILE, "Too many open files")})
    assert vars(caplog.records[2])["left_out"] == 998
    assert handler.count == 1001


async def test_an_operating_system_error_has_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    handler = LoopErrors()
    handler(asyncio.get_running_loop(), {"message": "accept failed", "exception": OSError(24, "no files")})
    record = caplog.records[0]
    assert not record.exc_info
    assert vars(record)["error"] == "[Errno 24] no files"


async def test_the_loop_reports_a_failing_callback(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopErrors())
    reported = asyncio.Event()

    def fail() -> None:
        loop.call_soon(reported.set)
        raise LookupError("no such thing")

    loop.call_soon(fail)
    await reported.wait()
    record = caplog.records[0]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)
    assert "fail" in vars(record)["source"]


async def test_a_blocked_loop_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    monitor = StallMonitor(threshold=0.05, interval=0.001)
    runner = asyncio.get_running_loop().create_task(monitor.run())
    await asyncio.sleep(0)
    time.sleep(0.2)
    while not monitor.count:
        await asyncio.sleep(0)
    runner.cancel()
    assert monitor.longest > 0.05
    assert caplog.records[0].getMessage() == "the event loop stalled"
    stack = vars(caplog.records[0])["stack"]
    # The innermost first, without a value: where the test sleeps.
    assert stack.startswith("gatewayd/observe/test_loop.py:")
    assert " test_a_blocked_loop_is_counted < " in stack
    told = vars(caplog.records[0])
    # It slept: other programs could have the processor.
    assert told["cpu_ms"] < 100 < told["ms"]


def test_a_short_delay_is_no_stall(caplog: pytest.LogCaptureFixture) -> None:
    monitor = StallMonitor(threshold=0.1)
    monitor.observe(0.1)
    assert monitor.count == 0
    assert not caplog.records


def test_many_stalls_make_one_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    monitor = StallMonitor(clock=clock)
    for stall in (0.2, 0.5, 0.3):
        monitor.observe(stall)
    clock.now += 10
    monitor.observe(0.4)
    assert (monitor.count, monitor.longest) == (4, 0.5)
    assert [vars(record)["ms"] for record in caplog.records] == [200, 400]
    assert vars(caplog.records[1])["left_out"] == 2
