"""Counts of calls of models."""

from typing import Any

import pytest

from gatewayd.measurement.cells import OTHER, CounterCell, LabeledCells
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage
from gatewayd.observe.metrics.calls import MAX_LABEL_CHARACTERS, CallMetrics


def make_call(**changes: Any) -> MeteredCall:
    facts = {
        "source": "p",
        "began": 1.0,
        "first_at": 1.5,
        "ended_at": 3.0,
        "outcome": CallOutcome.ANSWERED,
        "usage": TokenUsage(prompt=10, cached=4, completion=5),
        "attempts": 1,
    }
    return MeteredCall("u", (), "", **{"model": "m", "endpoint": "chat", "is_stream": True} | facts | changes)


def values(cells: LabeledCells[CounterCell]) -> dict[tuple[str, ...], float]:
    return {labels: cell.value for labels, cell in cells.items() if cell.value}


def test_a_stream_from_its_beginning_to_its_end() -> None:
    metrics, call = CallMetrics(), make_call()
    metrics.begun(call)
    assert (metrics.in_flight, metrics.streams) == (1, 1)
    metrics.finished(call)
    assert (metrics.in_flight, metrics.streams) == (0, 0)
    assert values(metrics.calls) == {("p", "m", "chat", "answered"): 1}
    assert values(metrics.tokens) == {
        ("p", "m", "prompt"): 10,
        ("p", "m", "completion"): 5,
        ("p", "m", "cached"): 4,
    }
    assert [cell.total for _, cell in metrics.first_tokens.items()] == [0.5]
    assert [cell.total for _, cell in metrics.durations.items()] == [2.0]
    assert not values(metrics.errors)
    assert not values(metrics.retries)


def test_a_whole_answer_has_no_time_to_the_first_token() -> None:
    metrics, call = CallMetrics(), make_call(is_stream=False)
    metrics.begun(call)
    metrics.finished(call)
    assert [sum(cell.counts) for _, cell in metrics.first_tokens.items()] == [0]


def test_failed_calls_count_their_kind_and_all_further_attempts() -> None:
    metrics = CallMetrics()
    call = make_call(
        outcome=CallOutcome.FAILED,
        usage=None,
        attempts=3,
        retries=2,
        error_kind="upstream_failed",
        first_at=0,
    )
    metrics.begun(call)
    metrics.finished(call)
    assert values(metrics.errors) == {("p", "upstream_failed"): 1}
    assert values(metrics.retries) == {("p",): 4}
    again = make_call(attempts=2)
    metrics.begun(again)
    metrics.finished(again)
    assert values(metrics.retries) == {("p",): 5}


@pytest.mark.parametrize(
    ("outcome", "kinds"),
    [(CallOutcome.CUT, {("p", "cut"): 1}), (CallOutcome.CANCELLED, {}), (CallOutcome.ANSWERED, {})],
)
def test_an_answer_that_breaks_off_is_an_error_of_its_own(
    outcome: CallOutcome, kinds: dict[tuple[str, ...], float]
) -> None:
    metrics, call = CallMetrics(), make_call(outcome=outcome)
    metrics.begun(call)
    metrics.finished(call)
    assert values(metrics.errors) == kinds


def test_a_caller_who_invents_models_makes_no_label_values_beyond_the_limit() -> None:
    metrics = CallMetrics(max_models=3)
    for number in range(50):
        call = make_call(model=f"m{number}")
        metrics.begun(call)
        metrics.finished(call)
    models = {labels[1]: value for labels, value in values(metrics.calls).items()}
    assert models == {"m0": 1, "m1": 1, "m2": 1, OTHER: 47}
    assert len(metrics.durations) == 4


def test_long_names_are_shortened() -> None:
    metrics, call = CallMetrics(), make_call(model="m" * 10_000)
    metrics.begun(call)
    metrics.finished(call)
    assert {len(labels[1]) for labels in values(metrics.calls)} == {MAX_LABEL_CHARACTERS}
