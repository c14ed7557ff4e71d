"""What models do now: calls in flight, and those of the last minute."""

from gatewayd.metering.load import LoadSums, LoadWatch
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage


def test_calls_in_flight_and_of_the_last_minute_are_put_together() -> None:
    now = 1000.0
    watch = LoadWatch(lambda: now)
    meter = CallMeter([watch])
    waiting = MeteredCall("u1", (), "k", "m", "chat", is_stream=True, source="p")
    begun = MeteredCall("u2", (), "", "m", "chat", source="p", first_at=999.5)
    meter.calls |= {waiting, begun}
    for ended_at, outcome in ((900.0, "answered"), (999.0, "answered"), (999.5, "failed")):
        call = MeteredCall("u1", (), "k", "n", "chat", source="p", began=990.0, first_at=992.0)
        call.ended_at, call.outcome, call.usage = ended_at, CallOutcome(outcome), TokenUsage(9, completion=60)
        watch.finished(call)
    total, lines = watch.snapshot(meter, "model")
    assert total == LoadSums(2, 1, 1, 2, 1, 120, 2, 4.0)
    assert lines == {"m": LoadSums(2, 1, 1), "n": LoadSums(0, 0, 0, 2, 1, 120, 2, 4.0)}
    assert set(watch.snapshot(meter, "user")[1]) == {"u1", "u2"}
    assert set(watch.snapshot(meter, "key")[1]) == {"k", ""}
    now += 100
    assert watch.snapshot(meter, "provider")[0].finished == 0
