"""The rate limit: windows that slide, refusals that say how long, and the door that it is loaded through."""

import math
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.plugins.builtin import rate_limit
from gatewayd.plugins.builtin.rate_limit import Filter, RateWindow, estimate_tokens
from gatewayd.plugins.records import PluginFamily, PluginKind
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.builtin_functions import with_builtin
from tests.fakes.plugins.memory import actor_of, scope_of


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make(**valves: Any) -> tuple[Filter, Clock]:
    made, clock = Filter(), Clock()
    made.clock = clock
    made.valves = Filter.Valves(**{"user_per_minute": 0, **valves})
    return made, clock


async def send(
    made: Filter, user: str = "u1", *, model: str = "m", role: str = "user", text: str = "hi"
) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    assert await made.inlet(body, {"id": user, "role": role}) is body


async def refused(made: Filter, *args: Any, **kwargs: Any) -> Any:
    with pytest.raises(Exception) as caught:
        await send(made, *args, **kwargs)
    assert caught.value.status_code == 429  # type: ignore[attr-defined]
    return caught.value


async def test_requests_over_the_limit_are_refused_with_the_time_to_wait() -> None:
    made, clock = make(user_per_minute=2)
    await send(made)
    clock.now += 20
    await send(made)
    clock.now += 10.5
    error = await refused(made)
    assert error.detail == ("cannot answer yet: the limit is 2 requests in a minute; try again in 30 seconds")
    assert error.headers == {"Retry-After": "30"}
    clock.now += 29.5
    await send(made)
    assert (await refused(made)).headers == {"Retry-After": "20"}


async def test_tasks_that_follow_a_request_are_not_counted() -> None:
    made, _ = make(user_per_minute=1)
    await send(made)
    for endpoint in ("background", "task"):
        body = {"model": "m", "messages": [], "metadata": {"endpoint": endpoint}}
        if endpoint == "background":
            assert await made.inlet(body, {"id": "u1", "role": "user"}) is body
        else:
            with pytest.raises(Exception, match="try again"):
                await made.inlet(body, {"id": "u1", "role": "user"})


async def test_refused_requests_are_not_counted() -> None:
    made, clock = make(user_per_minute=1)
    await send(made)
    for _ in range(5):
        clock.now += 10
        await refused(made)
    clock.now += 10
    await send(made)


async def test_each_user_has_a_window() -> None:
    made, _ = make(user_per_minute=1)
    await send(made, "u1")
    await send(made, "u2")
    await refused(made, "u1")


async def test_a_limit_for_user_and_model_leaves_other_models_open() -> None:
    made, _ = make(user_model_per_minute=1)
    await send(made, model="m")
    await send(made, model="n")
    await send(made, "u2", model="m")
    assert "1 request to m in a minute" in (await refused(made, model="m")).detail


async def test_a_limit_for_a_model_counts_all_users() -> None:
    made, _ = make(model_per_hour=2)
    await send(made, "u1")
    await send(made, "u2")
    assert "2 requests of all users to m in an hour" in (await refused(made, "u3")).detail


async def test_the_longest_wait_of_several_limits_is_told() -> None:
    made, clock = make(user_per_minute=1, user_per_hour=1)
    await send(made)
    clock.now += 30
    assert (await refused(made)).headers == {"Retry-After": "3570"}


async def test_a_request_that_one_limit_refuses_counts_for_none() -> None:
    made, _ = make(user_per_minute=2, model_per_minute=1)
    await send(made, "u1", model="m")
    await refused(made, "u1", model="m")
    await send(made, "u1", model="n")


async def test_administrators_are_exempt_unless_the_valve_says_otherwise() -> None:
    made, _ = make(user_per_minute=1)
    for _ in range(3):
        await send(made, role="admin")
    made.valves.admins_exempt = False
    await send(made, role="admin")
    await refused(made, role="admin")


async def test_tokens_are_estimated_from_the_texts() -> None:
    made, clock = make(tokens_per_minute=100)
    await send(made, text="x" * 240)
    clock.now += 10
    error = await refused(made, text="x" * 200)
    assert error.detail == "cannot answer yet: the limit is 100 tokens in a minute; try again in 50 seconds"
    await send(made, text="x" * 160)


async def test_a_request_that_never_fits_is_not_told_to_wait() -> None:
    made, _ = make(tokens_per_minute=10)
    error = await refused(made, text="x" * 80)
    assert error.detail == "cannot answer: the request has about 20 tokens, and 10 are allowed in a minute"
    assert error.headers == {}


async def test_without_limits_everything_passes() -> None:
    made, _ = make()
    for _ in range(100):
        await send(made)


async def test_windows_in_which_nothing_is_left_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_WINDOWS", 3)
    made, clock = make(user_per_minute=1)
    for number in range(3):
        await send(made, f"old{number}")
    clock.now += 61
    await send(made, "new")
    assert len(made._windows) == 1
    await refused(made, "new")


def test_a_window_waits_for_as_much_as_is_needed() -> None:
    window = RateWindow(60)
    for at, amount in ((0.0, 5), (10.0, 3), (20.0, 2)):
        window.count(at, amount)
    assert window.wait(30.0, 1, 11) == 0
    assert window.wait(30.0, 5, 10) == 30
    assert window.wait(30.0, 6, 10) == 40
    assert window.wait(30.0, 11, 10) == math.inf


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ([{"content": "12345"}], 2),
        ([{"content": [{"type": "text", "text": "1234"}, {"type": "image_url", "image_url": {}}, 7]}], 1),
        ([{"content": None}, "nonsense", {}], 0),
        (None, 0),
    ],
)
def test_tokens_of_messages(messages: Any, tokens: int) -> None:
    assert estimate_tokens(messages) == tokens


async def test_it_refuses_without_the_web_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(rate_limit.importlib, "import_module", absent)
    made, _ = make(user_per_minute=1)
    await send(made)
    error = await refused(made)
    assert type(error) is rate_limit.HTTPException
    assert str(error) == error.detail


async def test_through_the_door_it_answers_429_and_spares_administrators() -> None:
    async with with_builtin("rate_limit", user_per_minute=1) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "rate_limit")
        assert loaded.plugin.kind is PluginKind.FILTER
        assert loaded.priority() == -100
        body = {"model": "m", "messages": []}
        assert await loaded.call("inlet", scope_of(), {"body": body}) is body
        with pytest.raises(PluginError) as caught:
            await loaded.call("inlet", scope_of(), {"body": body})
        assert caught.value.status == 429
        assert caught.value.text.startswith(
            "cannot answer yet: the limit is 1 request in a minute; try again"
        )
        for _ in range(3):
            await loaded.call("inlet", scope_of(actor_of(role=Role.ADMIN)), {"body": body})
