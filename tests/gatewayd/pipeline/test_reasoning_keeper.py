"""The memory of reasoning in the pipeline: what is given back, watched, and left alone."""

import asyncio
from collections import OrderedDict
from typing import Any

import pytest

from gatewayd.catalog.records import Model
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.pipeline.reasoning_keeper import (
    MAX_PLAIN_MESSAGES,
    SLICE_MESSAGES,
    ReasoningKeeper,
    has_answers,
    reasoning_origin,
)
from gatewayd.time_slices import LoopPacer
from tests.fakes.providers.models import make_model

DEEPSEEK = make_model("d", source="one", maker="deepseek")
SAME_MAKER = make_model("d", source="two", maker="deepseek")
OWN_ENGINE = make_model("e", source="engine")
OTHER_ENGINE = make_model("e", source="other engine")

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def asked(**message: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", **message}],
    }


async def thinking(keeper: ReasoningKeeper, model: Model, **message: Any) -> None:
    watch = keeper.watch("ann")
    watch.begin(reasoning_origin(model))
    answer = {"role": "assistant", "content": "b", "reasoning_content": "hm", **message}
    watch.whole(Completion(body={"choices": [{"index": 0, "message": answer}]}))


async def restored(keeper: ReasoningKeeper, body: dict[str, Any], model: Model) -> dict[str, Any]:
    found = await keeper.restore(body, "ann", model, is_converted=False)
    message: dict[str, Any] = found["messages"][-1]
    return message


@pytest.mark.parametrize(
    ("maker", "asked_model", "is_given"),
    [
        (DEEPSEEK, DEEPSEEK, True),
        (DEEPSEEK, SAME_MAKER, True),
        (DEEPSEEK, OWN_ENGINE, False),
        (OWN_ENGINE, OWN_ENGINE, True),
        # Engines that people run themselves may have any model.
        (OWN_ENGINE, OTHER_ENGINE, False),
    ],
)
async def test_reasoning_goes_to_its_maker(maker, asked_model, is_given):
    keeper = ReasoningKeeper(ReasoningMemory())
    await thinking(keeper, maker)
    message = await restored(keeper, asked(reasoning_content="hm"), asked_model)
    assert ("reasoning_content" in message) == is_given
    await thinking(keeper, maker, tool_calls=[CALL])
    message = await restored(keeper, asked(tool_calls=[CALL]), asked_model)
    assert (message.get("reasoning_content") == "hm") == is_given


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m"},
        {"model": "m", "messages": None},
        {"model": "m", "messages": [{"role": "user", "content": "a"}]},
        {"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        asked(tool_calls=[CALL]),
        asked(reasoning_content="of nobody that we know"),
    ],
)
async def test_the_same_body(body):
    keeper = ReasoningKeeper(ReasoningMemory())
    assert await keeper.restore(body, "ann", DEEPSEEK, is_converted=False) is body


async def test_a_long_history_lets_others_run(monkeypatch):
    monkeypatch.setattr(LoopPacer, "seconds", 0.0)
    keeper = ReasoningKeeper(ReasoningMemory())
    await thinking(keeper, DEEPSEEK)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    messages = [{"role": "user", "content": "a"}] * (8 * SLICE_MESSAGES)
    messages += [{"role": "assistant", "content": "b", "reasoning_content": "hm"}] * MAX_PLAIN_MESSAGES
    await keeper.restore({"messages": messages}, "ann", OWN_ENGINE, is_converted=False)
    counting.cancel()
    assert turns >= 8 + MAX_PLAIN_MESSAGES


@pytest.mark.parametrize("is_plain", [True, False])
async def test_ids_of_the_caller(is_plain):
    """A chunk with a call is never plain, whatever its reader says."""
    watch = ReasoningKeeper(ReasoningMemory()).watch("ann")
    watch.begin("mistral")
    watch.call_ids = {"abcdefgh1": "functions.f:0"}
    text = CompletionChunk(raw=b'data: {"choices":[]}\n\n', is_plain=is_plain)
    assert watch.feed(text) is text
    delta = {"tool_calls": [{"index": 0, **CALL, "id": "abcdefgh1"}]}
    chunk = CompletionChunk(events=[{"choices": [{"index": 0, "delta": delta}]}])
    assert watch.feed(chunk).events[0]["choices"][0]["delta"]["tool_calls"][0]["id"] == "functions.f:0"
    message = {"role": "assistant", "tool_calls": [{**CALL, "id": "abcdefgh1"}]}
    whole = watch.whole(Completion(body={"choices": [{"index": 0, "message": message}]}))
    assert whole.body["choices"][0]["message"]["tool_calls"][0]["id"] == "functions.f:0"


async def test_each_answer_begins_anew():
    """A request with tools of the gateway, or one that another source answers, has several answers."""
    keeper = ReasoningKeeper(ReasoningMemory())
    watch = keeper.watch("ann")
    for model in (OWN_ENGINE, DEEPSEEK):
        watch.begin(reasoning_origin(model))
        delta = {"reasoning_content": "hm", "tool_calls": [{"index": 0, **CALL}]}
        watch.feed(
            CompletionChunk(events=[{"choices": [{"index": 0, "delta": delta, "finish_reason": "x"}]}])
        )
    assert (await restored(keeper, asked(tool_calls=[CALL]), DEEPSEEK))["reasoning_content"] == "hm"
    assert "reasoning_content" not in await restored(keeper, asked(tool_calls=[CALL]), OTHER_ENGINE)


def test_a_message_that_a_plugin_made_of_another_mapping_is_an_answer() -> None:
    assert has_answers({"messages": [OrderedDict(role="assistant", content="b")]})
    assert not has_answers({"messages": [{"role": "user", "content": "a"}]})
