"""The wish to end."""

import os
import signal
import threading

import pytest

from gatewayctl.ingest.stop import SIGNALS, Stop, StoppedError


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noticed_at_a_safe_place(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = Stop()
    with stop.on_signals():
        stop.check()
        os.kill(os.getpid(), number)
        assert stop.is_set
        # A second one ends the program at once.
        assert {signal.getsignal(each) for each in SIGNALS} == {signal.SIG_DFL}
        with pytest.raises(StoppedError):
            stop.check()
        with pytest.raises(StoppedError):
            stop.sleep(60)
    assert signal.getsignal(number) is before


def test_sleep_ends_by_itself() -> None:
    Stop().sleep(0)


def test_another_thread_leaves_the_signals_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def run() -> None:
        with Stop().on_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
