"""Counts of calls of models."""

from dataclasses import dataclass, field

from gatewayd.measurement.cells import OTHER, CounterCell, LabeledCells
from gatewayd.observe.metrics.calls import MAX_LABEL_CHARACTERS, CallMetrics


@dataclass
class Usage:
    prompt: int = 10
    cached: int = 4
    cache_written: int = 0
    completion: int = 5
    reasoning: int = 0


@dataclass
class Call:
    source: str = "p"
    model: str = "m"
    endpoint: str = "chat"
    is_stream: bool = True
    began: float = 1.0
    first_at: float = 1.5
    ended_at: float = 3.0
    outcome: str | None = "answered"
    usage: Usage | None = field(default_factory=Usage)
    attempts: int = 1
    retries: int = 0
    error_kind: str = ""


def values(cells: LabeledCells[CounterCell]) -> dict[tuple[str, ...], float]:
    return {labels: cell.value for labels, cell in cells.items() if cell.value}


def test_a_stream_from_its_beginning_to_its_end() -> None:
    metrics, call = CallMetrics(), Call()
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
    metrics, call = CallMetrics(), Call(is_stream=False)
    metrics.begun(call)
    metrics.finished(call)
    assert [sum(cell.counts) for _, cell in metrics.first_tokens.items()] == [0]


def test_failed_calls_count_their_kind_and_all_further_attempts() -> None:
    metrics = CallMetrics()
    call = Call(outcome="failed", usage=None, attempts=3, retries=2, error_kind="upstream_failed", first_at=0)
    metrics.begun(call)
    metrics.finished(call)
    assert values(metrics.errors) == {("p", "upstream_failed"): 1}
    assert values(metrics.retries) == {("p",): 4}
    again = Call(attempts=2)
    metrics.begun(again)
    metrics.finished(again)
    assert values(metrics.retries) == {("p",): 5}


def test_a_caller_who_invents_models_makes_no_label_values_beyond_the_limit() -> None:
    metrics = CallMetrics(max_models=3)
    for number in range(50):
        call = Call(model=f"m{number}")
        metrics.begun(call)
        metrics.finished(call)
    models = {labels[1]: value for labels, value in values(metrics.calls).items()}
    assert models == {"m0": 1, "m1": 1, "m2": 1, OTHER: 47}
    assert len(metrics.durations) == 4


def test_long_names_are_shortened() -> None:
    metrics, call = CallMetrics(), Call(model="m" * 10_000)
    metrics.begun(call)
    metrics.finished(call)
    assert {len(labels[1]) for labels in values(metrics.calls)} == {MAX_LABEL_CHARACTERS}
