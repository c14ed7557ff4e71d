from gatewayd.http.traceback_limit import (
    MAX_ORIGINS,
    PAUSE_SECONDS,
    TracebackLimiter,
    root_cause_of,
    traceback_origin_of,
)


class Clock:
    time = 0.0

    def __call__(self) -> float:
        return self.time


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        if cause is not None:
            raise error from cause
        raise error
    except Exception as caught:
        return caught


def test_a_place_is_told_once_in_a_while() -> None:
    clock = Clock()
    traces = TracebackLimiter(clock)
    assert traces.wants(raised(ValueError()))
    clock.time = PAUSE_SECONDS - 1
    assert not traces.wants(raised(ValueError()))
    assert traces.wants(raised(KeyError()))
    clock.time = PAUSE_SECONDS
    assert traces.wants(raised(ValueError()))


def test_the_place_is_that_of_the_first_cause() -> None:
    root = raised(KeyError())
    error = raised(ValueError(), raised(TypeError(), root))
    assert root_cause_of(error) is root
    assert traceback_origin_of(error) == traceback_origin_of(root)
    assert traceback_origin_of(KeyError()) == ("KeyError", "", 0)


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError(), KeyError()
    one.__cause__, two.__cause__ = two, one
    assert root_cause_of(one) is two


def test_the_oldest_places_are_forgotten() -> None:
    traces = TracebackLimiter(Clock())
    kinds = [type(f"Error{number}", (Exception,), {}) for number in range(MAX_ORIGINS + 1)]
    assert all(traces.wants(kind()) for kind in kinds)
    assert len(traces._logged) == MAX_ORIGINS
    assert traces.wants(kinds[0]())
    assert not traces.wants(kinds[-1]())
