"""The names of the conventions are those of the package that the SDK brings."""

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import client_attributes, error_attributes, http_attributes

from gatewayd.observe.traces import conventions as names

KNOWN = {
    value
    for module in (gen_ai_attributes, gen_ai_metrics, client_attributes, error_attributes, http_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
} | {"http.server.request.duration", names.REQUEST_ID}


OURS = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_name_is_one_of_the_conventions(name: str) -> None:
    assert name in KNOWN


@pytest.mark.parametrize(
    ("bounds", "first", "last"),
    [
        (names.DURATION_BOUNDS, 0.01, 81.92),
        (names.TOKEN_BOUNDS, 1, 67_108_864),
        (names.FIRST_CHUNK_BOUNDS, 0.001, 10),
    ],
)
def test_buckets(bounds: tuple[float, ...], first: float, last: float) -> None:
    assert (bounds[0], bounds[-1]) == (first, last)
    assert list(bounds) == sorted(bounds)
