"""The gateway without metrics, usage and limits: `python -m tests.bench.unmetered`, instead of `-m gatewayd`.

Beside the real one in a run (`--unmetered`) it tells what these three cost together. Nothing is counted or
stored of requests, calls and chunks, but how many took the fast path; answers are the same. No setting does
that: a gateway always meters.
"""

from typing import Any

from gatewayd import command
from gatewayd.http.observation import NO_ROUTE, Observed, RequestObservation
from gatewayd.metering.answers import MeteredChunks
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.pipeline import fast_path, pipeline

ROW = (NO_ROUTE, RequestMetrics().tally(NO_ROUTE, "GET"))


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def switch_off() -> None:
    """Replace what meters requests, calls and chunks, in this process."""
    call, observed = MeteredCall("", (), "", "", ""), Observed(ROW, (), None)
    replaced: dict[Any, dict[str, Any]] = {
        CallMeter: {
            **dict.fromkeys(("watch", "start", "first", "finish"), nothing),
            "prepare": lambda *_, **__: call,
            "is_free": lambda *_: True,
        },
        MeteredChunks: {"_shown": lambda _, chunk: chunk, "_end": nothing},
        RequestObservation: {
            **dict.fromkeys(("end", "withdraw"), nothing),
            "begin": lambda *_: observed,
        },
        fast_path: {
            **dict.fromkeys(("finish_whole", "foresee", "note_attempt"), nothing),
            "ask_for_usage": lambda _: False,
        },
        pipeline: {"finish_whole": nothing},
    }
    for place, values in replaced.items():
        for name, value in values.items():
            if not hasattr(place, name):
                raise AttributeError(f"{place} has no {name}: the metering has changed")
            setattr(place, name, value)


if __name__ == "__main__":
    switch_off()
    command.main()
