"""Tests for gatewayd.pipeline.filters.inputs."""

from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import ModelRecord
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.filters.conversions import EmbeddingInputs, LegacyCompletions, RequestConversion
from gatewayd.pipeline.filters.inputs import FilteredRequest, InputFilters, RequestCaller
from gatewayd.pipeline.responses.items import ResponseItems
from gatewayd.plugins.runtime.context import CallScope, RequestFacts
from tests.fakes.providers.function_models import FunctionWorld, function, function_world
from tests.fakes.providers.models import make_actor

ADMIN = make_actor()
ADDRESS = "ann@example.org"
BODIES: list[tuple[RequestConversion, dict[str, Any]]] = [
    (
        LegacyCompletions(),
        {"model": "m", "prompt": "ann@example.org", "suffix": "ann@example.org", "stream": True},
    ),
    (ResponseItems(), {"model": "m", "input": "ann@example.org", "metadata": {"own": 1}}),
    (EmbeddingInputs(), {"model": "m", "input": ["ann@example.org"], "user": "u"}),
]
HIDE = """
class Filter:
    def inlet(self, body, __metadata__):
        assert "prompt" not in body and "input" not in body
        for message in body["messages"]:
            message["content"] = message["content"].replace("ann@example.org", __metadata__["endpoint"])
        body["seed"] = 7
        return body
"""
ROUTE = """
class Filter:
    def inlet(self, body):
        body["model"] = "n"
        return body
"""


def filtering(line: str) -> str:
    return f"class Filter:\n    def inlet(self, body):\n        {line}\n        return body\n"


async def applied(
    world: FunctionWorld, conversion: RequestConversion, body: dict[str, Any], **changes: Any
) -> FilteredRequest:
    caller = RequestCaller(**{"actor": ADMIN, "request_id": "r1", **changes})
    return await InputFilters(world.catalog, world.filters).apply(conversion, body, caller)


async def refused(
    world: FunctionWorld, conversion: RequestConversion, body: dict[str, Any], **changes: Any
) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await applied(world, conversion, body, **changes)
    return caught.value


@pytest.mark.parametrize(("conversion", "body"), BODIES)
async def test_request_without_record_and_filters_is_the_same_object(
    conversion: RequestConversion, body: dict[str, Any]
) -> None:
    async with function_world() as world:
        asked = await applied(world, conversion, body)
        assert asked.body is body
        assert (asked.streams, asked.context.user_id, asked.context.request_id) == ((), "u1", "r1")
        assert not await InputFilters(world.catalog, world.filters).alters_requests("m")


@pytest.mark.parametrize(("conversion", "body"), BODIES)
async def test_inlets_change_the_texts_and_the_other_fields(
    conversion: RequestConversion, body: dict[str, Any]
) -> None:
    async with function_world(function("hide", HIDE)) as world:
        asked = await applied(world, conversion, body, facts=lambda: RequestFacts(path="/there"))
        hidden = {
            name: conversion.endpoint.value if name in conversion.texts else value
            for name, value in body.items()
        }
        if isinstance(body.get("input"), list):
            hidden["input"] = [conversion.endpoint.value]
        assert asked.body == {**hidden, "seed": 7}
        assert isinstance(asked.context.scope, CallScope)
        assert asked.context.scope.facts.path == "/there"
        assert await InputFilters(world.catalog, world.filters).alters_requests("m")


@pytest.mark.parametrize(("conversion", "body"), BODIES)
async def test_refusal_of_a_filter_is_that_of_the_request(
    conversion: RequestConversion, body: dict[str, Any]
) -> None:
    async with function_world(function("no", filtering("raise ValueError('not today')"))) as world:
        assert "not today" in (await refused(world, conversion, body)).message


@pytest.mark.parametrize(
    "line", ["body['files'] = [{'type': 'file', 'id': 'f'}]", "body['tool_ids'] = ['t']"]
)
async def test_what_only_chats_have_is_refused(line: str) -> None:
    async with function_world(function("more", filtering(line))) as world:
        for conversion, body in BODIES:
            assert "adds documents or tools" in (await refused(world, conversion, body)).message


async def test_record_applies_and_no_request_passes_it_by() -> None:
    async with function_world() as world:
        params = {"system": "Be kind to {{USER_NAME}}.", "temperature": 0}
        await world.catalog.put_record(ModelRecord("m", "u1", "M", params=params))
        asked = await applied(world, ResponseItems(), {"model": "m", "input": "hi", "temperature": 2})
        assert asked.body == {
            "model": "m",
            "input": "hi",
            "temperature": 0,
            "instructions": "Be kind to u1.",
        }
        for conversion, body in (BODIES[0], BODIES[2]):
            error = await refused(world, conversion, body)
            assert (error.kind, error.code) == (ErrorKind.INVALID_REQUEST, "not_expressible")
        assert await InputFilters(world.catalog, world.filters).alters_requests("m")
        await world.catalog.put_record(ModelRecord("m", "u1", "M", params={"temperature": 0}))
        assert (await applied(world, *BODIES[0])).body["temperature"] == 0
        await world.attach("m", knowledge=[{"id": "c"}])
        for conversion, body in BODIES:
            assert "documents" in (await refused(world, conversion, body)).message


async def test_filter_that_routes_needs_the_right_to_the_other_model_and_its_record() -> None:
    async with function_world(function("route", ROUTE)) as world:
        await world.catalog.put_record(ModelRecord("n", "u1", "N", params={"temperature": 0}))
        asked = await applied(world, *BODIES[0])
        assert asked.candidates[0].model.id == "n"
        assert asked.body["temperature"] == 0
        await world.catalog.put_record(ModelRecord("m", "u2", "M"))
        error = await refused(world, *BODIES[0], actor=make_actor("u2", Role.USER))
        assert error.kind is ErrorKind.NOT_FOUND


async def test_only_provider_that_is_named_is_asked() -> None:
    async with function_world() as world:
        assert (await applied(world, *BODIES[0], source="fake")).candidates[0].source is world.source
        assert (await refused(world, *BODIES[0], source="other")).kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("name", ["Model", "PROMPT", "Suffix", "me\u017f\u017fages"])
async def test_field_that_a_provider_may_take_for_another_is_refused(name: str) -> None:
    async with function_world() as world:
        error = await refused(world, LegacyCompletions(), {"model": "m", "prompt": "a", name: "x"})
        assert "lower case" in error.message
