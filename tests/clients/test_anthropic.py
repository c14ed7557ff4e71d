"""The client of Anthropic for Python beyond what every client is tried with: helpers and its own fields."""

import asyncio
from typing import Any

import anthropic
import pytest
from pydantic import BaseModel

from tests.clients.askers import SECONDS
from tests.clients.conversation import ANTHROPIC, ANTHROPIC_TOOLS, PNG, SAYINGS, Said
from tests.clients.scene import PREFIXES, Scene, model_of
from tests.fakes.providers.upstream import SILENCE, Reply, anthropic_message, json_reply, openai_completion

HI: Any = [{"role": "user", "content": "hi"}]
KINDS = tuple(PREFIXES)
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


class City(BaseModel):
    """What a model is to answer."""

    name: str
    people: int


CITY = '{"name": "Ulm", "people": 7}'


def ask(client: anthropic.Anthropic, kind: str, **fields: Any) -> Any:
    return client.messages.create(**{"model": model_of(kind), "max_tokens": 64, "messages": HI, **fields})


# The streaming helper --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_of_the_helper(scene: Scene, anthropic_client: anthropic.Anthropic, kind: str) -> None:
    scene.provider.script(SAYINGS["text"].reply(kind, stream=True))
    with anthropic_client.messages.stream(model=model_of(kind), max_tokens=9, messages=HI) as stream:
        assert list(stream.text_stream) == ["Hel", "lo é\U0001f600"]
        message = stream.get_final_message()
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 2)
    assert message.model == model_of(kind)
    assert message.id


@pytest.mark.parametrize("kind", KINDS)
def test_the_events_of_the_protocol_in_order(
    scene: Scene, anthropic_client: anthropic.Anthropic, kind: str
) -> None:
    said = Said(("Hel", "lo"), ("hm",), (("f", {"x": 1}), ("g", {"y": "é"})), "tool_calls")
    scene.provider.script(said.reply(kind, stream=True))
    asked = {**ANTHROPIC, "model": model_of(kind)}
    asked.pop("temperature")
    with anthropic_client.messages.create(**asked, stream=True) as stream:
        events = list(stream)
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("message_start") == kinds.count("message_delta") == 1
    blocks = [event for event in events if event.type.startswith("content_block")]
    is_open = -1
    for event in blocks:
        if event.type == "content_block_start":
            assert event.index == is_open + 1
            is_open = event.index
        assert event.index == is_open
    starts = [event.content_block.type for event in blocks if event.type == "content_block_start"]
    assert starts == ["thinking", "text", "tool_use", "tool_use"]
    assert sum(event.type == "content_block_stop" for event in blocks) == 4
    ids = [
        event.content_block.id
        for event in blocks
        if getattr(event, "content_block", PICTURE)
        and event.type == "content_block_start"
        and event.content_block.type == "tool_use"
    ]
    assert len(set(ids)) == 2


# Tools, pictures and failures in the history ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "f"}, {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
    ],
    ids=["any", "none", "named", "one at a time"],
)
def test_tools_are_forced(
    scene: Scene, anthropic_client: anthropic.Anthropic, choice: Any, sent: dict[str, Any]
) -> None:
    scene.provider.script(SAYINGS["a tool call"].reply("openai", stream=False))
    answer = ask(anthropic_client, "openai", tools=ANTHROPIC_TOOLS, tool_choice=choice)
    (block,) = answer.content
    assert (block.type, block.name, block.input) == ("tool_use", "f", {"x": 1})
    assert sent.items() <= scene.provider.last().json.items()
    ask(anthropic_client, "anthropic", tools=ANTHROPIC_TOOLS, tool_choice=choice)
    assert scene.provider.last().json["tool_choice"] == choice


RESULTS: Any = [
    {"role": "user", "content": "look"},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "text", "text": "seen"}, PICTURE],
            },
            {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True, "content": "no g"},
        ],
    },
]


def test_results_with_a_picture_and_an_error(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    ask(anthropic_client, "openai", messages=RESULTS, tools=ANTHROPIC_TOOLS)
    sent = scene.provider.last().json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    seen, failed = sent[2:4]
    assert (seen["tool_call_id"], seen["content"]) == ("toolu_1", "seen")
    assert (failed["tool_call_id"], failed["content"]) == ("toolu_2", "Error: no g")
    pictures = [part for part in sent[4]["content"] if part["type"] == "image_url"]
    assert [part["image_url"]["url"] for part in pictures] == [f"data:image/png;base64,{PNG}"]
    ask(anthropic_client, "ollama", messages=RESULTS, tools=ANTHROPIC_TOOLS)
    sent = scene.provider.last().json["messages"]
    assert [message.get("tool_name") for message in sent] == [None, None, "f", "g", None]
    assert sent[3]["content"] == "Error: no g"
    assert sent[4]["images"] == [PNG]
    ask(anthropic_client, "anthropic", messages=RESULTS, tools=ANTHROPIC_TOOLS)
    assert scene.provider.last().json["messages"] == RESULTS


def test_thoughts_go_back_to_where_they_came_from(
    scene: Scene, anthropic_client: anthropic.Anthropic
) -> None:
    scene.provider.script(SAYINGS["thoughts"].reply("anthropic", stream=False))
    first = ask(anthropic_client, "anthropic")
    assert [block.type for block in first.content] == ["thinking", "text"]
    history: Any = [*HI, {"role": "assistant", "content": first.content}, *HI]
    ask(anthropic_client, "anthropic", messages=history)
    sent = scene.provider.last().json["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "hm so", "signature": "sig"}
    ask(anthropic_client, "openai", messages=history)
    sent = scene.provider.last().json["messages"][1]
    assert sent == {"role": "assistant", "content": "Hello"}


# Fields of its own -----------------------------------------------------------------------------------------


def test_an_answer_in_the_form_of_a_schema(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    for kind in KINDS:
        scene.provider.script(Said((CITY,)).reply(kind, stream=False))
        answer = anthropic_client.messages.parse(
            model=model_of(kind), max_tokens=64, messages=HI, output_format=City
        )
        assert answer.parsed_output == City(name="Ulm", people=7)
        sent = scene.provider.last().json
        forms = {
            "openai": lambda body: body["response_format"]["json_schema"]["schema"],
            "anthropic": lambda body: body["output_config"]["format"]["schema"],
            "ollama": lambda body: body["format"],
        }
        assert set(forms[kind](sent)["properties"]) == {"name", "people"}


def test_the_sequence_that_stopped_it(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    stopped = anthropic_message("a", stop_reason="stop_sequence", stop_sequence="END")
    scene.provider.script(json_reply(stopped))
    answer = ask(anthropic_client, "anthropic", stop_sequences=["END"])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "END")
    told = openai_completion("a")
    told["choices"][0]["matched_stop"] = "END"
    scene.provider.script(json_reply(told))
    answer = ask(anthropic_client, "openai", stop_sequences=["END"])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "END")
    assert scene.provider.last().json["stop"] == ["END"]


def test_system_in_parts_and_cache_marks(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", **mark}]
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi", **mark}]}]
    ask(anthropic_client, "anthropic", system=system, messages=messages)
    assert scene.provider.last().json["system"] == system
    ask(anthropic_client, "openai", system=system, messages=messages)
    sent = scene.provider.last()
    assert b"cache_control" not in sent.body
    assert sent.json["messages"][0]["role"] == "system"


def test_betas_do_no_harm(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    for kind in KINDS:
        answer = anthropic_client.beta.messages.create(
            model=model_of(kind), max_tokens=9, messages=HI, betas=["some-beta-2026-01-01"]
        )
        assert answer.content[0].text == "Hello from m"
        with anthropic_client.beta.messages.stream(model=model_of(kind), max_tokens=9, messages=HI) as stream:
            assert stream.get_final_message().content[0].text == "Hello from m"


def test_usage_of_a_provider_that_counts_nothing(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    silent = openai_completion("Hello")
    del silent["usage"]
    scene.provider.script(json_reply(silent))
    usage = ask(anthropic_client, "openai").usage
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0


def test_what_could_not_be_honoured_is_told(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    raw = anthropic_client.messages.with_raw_response.create(
        model="o.m", max_tokens=9, messages=HI, extra_body={"no_such_field": 1}
    )
    assert "no_such_field" in raw.headers["x-gateway-warning"]
    assert raw.parse().content[0].text == "Hello from m"
    assert raw.headers["request-id"] == raw.headers["x-request-id"]


# Counting, lists, many at once -----------------------------------------------------------------------------


def test_tokens_are_counted_without_a_provider(scene: Scene, anthropic_client: anthropic.Anthropic) -> None:
    scene.provider.script()
    count = anthropic_client.messages.count_tokens
    short = count(model="o.m", messages=HI).input_tokens
    long = count(model="o.m", messages=HI, system="word " * 100).input_tokens
    tools = count(model="o.m", messages=HI, tools=ANTHROPIC_TOOLS).input_tokens
    assert 0 < short < tools < long
    assert 100 < long - short < 200
    beta = anthropic_client.beta.messages.count_tokens(model="o.m", messages=HI)
    assert beta.input_tokens == short
    assert scene.provider.fake.requests == []


def test_models(anthropic_client: anthropic.Anthropic) -> None:
    models = {model.id: model for model in anthropic_client.models.list()}
    assert set(models) >= {"o.m", "o.n", "a.m", "l.m"}
    shown = anthropic_client.models.retrieve("a.m")
    assert (shown.type, shown.id) == ("model", "a.m")
    assert shown.display_name
    assert shown.created_at.year >= 1970
    # The client asks for page after page by itself.
    page = anthropic_client.models.list(limit=2)
    assert len(page.data) == 2
    assert page.has_more
    assert [model.id for model in page] == list(models)
    with pytest.raises(anthropic.NotFoundError, match="'nope'"):
        anthropic_client.models.retrieve("nope")


async def test_many_at_once_are_not_mixed_up(scene: Scene) -> None:
    scene.provider.script()
    async with anthropic.AsyncAnthropic(
        base_url=f"{scene.url}/api", api_key=scene.key, max_retries=0, timeout=SECONDS
    ) as client:

        async def one(kind: str, name: str) -> str:
            asked: Any = {"model": PREFIXES[kind] + name, "max_tokens": 9, "messages": HI}
            async with client.messages.stream(**asked) as stream:
                return await stream.get_final_text()

        asked = [(kind, name) for kind in KINDS for name in ("m", "n")] * 5
        told = await asyncio.gather(*(one(kind, name) for kind, name in asked))
    assert told == [f"Hello from {name}" for _, name in asked]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_leaves_is_noticed(scene: Scene, kind: str) -> None:
    steps = SAYINGS["text"].reply(kind, stream=True).steps
    begun = len(steps) - (4 if kind == "anthropic" else 2)
    scene.provider.script(Reply(steps=[*steps[:begun], SILENCE]))
    async with anthropic.AsyncAnthropic(
        base_url=f"{scene.url}/api", api_key=scene.key, max_retries=0, timeout=SECONDS
    ) as client:
        asked: Any = {"model": model_of(kind), "max_tokens": 9, "messages": HI}
        async with client.messages.stream(**asked) as stream:
            async for _ in stream.text_stream:
                break
    await asyncio.to_thread(scene.provider.wait_closed, 5)
