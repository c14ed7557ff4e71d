"""The reserved parameters, apart from any plugin."""

import asyncio
import functools
from dataclasses import replace

import pytest

from gatewayd.accounts.records import Role
from gatewayd.events.records import EventTarget
from gatewayd.plugins.runtime import arguments
from gatewayd.plugins.runtime.arguments import CallServices, MethodParameters
from gatewayd.plugins.runtime.context import RequestFacts
from tests.fakes.plugins.memory import MemoryUserValves, NotedEvents, actor_of, scope_of


def around(events: NotedEvents | None = None) -> CallServices:
    loop = asyncio.get_running_loop()
    return CallServices(
        loop, events or NotedEvents(), MemoryUserValves(), lambda scope: ("request", scope.facts.path)
    )


def test_parameters_are_those_that_can_be_named() -> None:
    def method(a, /, b, c=1, *rest, d, e=2, **more): ...

    assert arguments.read_parameters(method) == MethodParameters(frozenset("bcde"), frozenset("ce"))
    assert arguments.read_parameters(functools.partial(method, 1, d=3)).names == frozenset("bcde")
    assert arguments.read_parameters(type) == MethodParameters(frozenset(), frozenset())


def test_a_user_record_shares_nothing_with_the_account() -> None:
    user = replace(
        actor_of("u", Role.ADMIN).user,
        settings={"ui": {"a": 1}},
        profile={"bio": "b", "profile_banner_image_url": "/b.png", "secret": "s"},
    )
    made = arguments.user_record(user)
    made["settings"]["ui"]["a"] = 2
    assert user.settings == {"ui": {"a": 1}}
    assert (made["role"], made["bio"], made["timezone"]) == ("admin", "b", None)
    assert made["profile_banner_image_url"] == "/b.png"
    assert "secret" not in made


async def test_a_request_is_made_only_for_who_asks() -> None:
    scope = scope_of(facts=RequestFacts(path="/api"))
    assert arguments.reserved_arguments(frozenset(), "p", scope, around()) == {}
    given = arguments.reserved_arguments(
        frozenset({"__request__", "body", "__unknown__"}), "p", scope, around()
    )
    assert given == {"__request__": ("request", "/api")}


async def test_a_model_that_a_plugin_changes_is_its_own() -> None:
    scope = scope_of(model={"id": "m", "info": {}})
    given = arguments.reserved_arguments(frozenset({"__model__"}), "p", scope, around())
    given["__model__"]["info"]["spoiled"] = True
    assert scope.model == {"id": "m", "info": {}}


async def test_events_carry_the_request_that_they_belong_to() -> None:
    events = NotedEvents()
    await arguments.make_emitter(EventTarget("u", request_id="r1"), around(events))({"type": "status"})
    await arguments.make_call(EventTarget("u", request_id="r1"), around(events))({"type": "input"})
    assert [target.request_id for target, _ in (*events.emitted, *events.asked)] == ["r1", "r1"]


async def test_an_event_under_way_is_delivered_although_the_task_is_cancelled() -> None:
    class Slow(NotedEvents):
        def __init__(self) -> None:
            super().__init__()
            self.entered, self.go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def emit(self, target: EventTarget, event: object) -> bool:
            self.entered.set()
            await self.go.wait()
            self.done.set()
            return True

    events = Slow()
    emit = arguments.make_emitter(EventTarget("u"), around(events))
    task = asyncio.ensure_future(emit({"type": "status"}))
    await events.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    events.go.set()
    await events.done.wait()


async def test_a_call_whose_task_is_cancelled_is_taken_back() -> None:
    class Slow(NotedEvents):
        entered = asyncio.Event()
        ended = asyncio.Event()

        async def call(self, target: EventTarget, event: object) -> bool:
            self.entered.set()
            try:
                return await asyncio.Event().wait()
            finally:
                self.ended.set()

    events = Slow()
    call = arguments.make_call(EventTarget("u"), around(events))
    task = asyncio.ensure_future(call({"type": "input"}))
    await events.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await events.ended.wait()


def test_events_for_a_gateway_that_has_ended_raise() -> None:
    async def make() -> arguments.EventFunction:
        return arguments.make_emitter(EventTarget("u"), around())

    emit = asyncio.run(make())

    async def use() -> None:
        await emit({"type": "status"})

    with pytest.raises(RuntimeError):
        asyncio.run(use())
