"""The client of OpenAI for Python beyond what every client is tried with: helpers and other resources."""

import asyncio
import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.clients.askers import SECONDS
from tests.clients.conversation import OPENAI_TOOLS, PNG, SAYINGS, Said
from tests.clients.scene import PREFIXES, Scene, model_of
from tests.fakes.providers.upstream import CUT, SILENCE, Reply, json_reply, sse

HI: Any = [{"role": "user", "content": "hi"}]
KINDS = tuple(PREFIXES)


class City(BaseModel):
    """What a model is to answer."""

    name: str
    people: int


CITY = '{"name": "Ulm", "people": 7}'


# Forms of the answer -------------------------------------------------------------------------------------


def schema_sent(kind: str, sent: dict[str, Any]) -> Any:
    """Return the schema where a provider of this kind looks for it."""
    if kind == "ollama":
        return sent["format"]
    form = sent["response_format"] if kind == "openai" else sent["output_config"]["format"]
    assert form["type"] == "json_schema"
    return form["json_schema"]["schema"] if kind == "openai" else form["schema"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_in_the_form_of_a_schema(
    scene: Scene, openai_client: openai.OpenAI, kind: str, *, stream: bool
) -> None:
    scene.provider.script(Said((CITY[:9], CITY[9:])).reply(kind, stream=stream))
    chats = openai_client.chat.completions
    asked: dict[str, Any] = {"model": model_of(kind), "messages": HI, "response_format": City}
    if stream:
        with chats.stream(**asked) as events:
            answer = events.get_final_completion()
    else:
        answer = chats.parse(**asked)
    assert answer.choices[0].message.parsed == City(name="Ulm", people=7)
    schema = schema_sent(kind, scene.provider.last().json)
    assert set(schema["properties"]) == {"name", "people"}
    assert schema["required"] == ["name", "people"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("required", {"openai": "required", "anthropic": {"type": "any"}}),
        ("none", {"openai": "none", "anthropic": {"type": "none"}}),
        ("auto", {"openai": "auto", "anthropic": {"type": "auto"}}),
        (
            {"type": "function", "function": {"name": "f"}},
            {
                "openai": {"type": "function", "function": {"name": "f"}},
                "anthropic": {"type": "tool", "name": "f"},
            },
        ),
    ],
    ids=["required", "none", "auto", "named"],
)
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_tools_are_forced(
    scene: Scene, openai_client: openai.OpenAI, kind: str, choice: Any, sent: dict[str, Any]
) -> None:
    scene.provider.script(SAYINGS["a tool call"].reply(kind, stream=False))
    answer = openai_client.chat.completions.create(
        model=model_of(kind), messages=HI, tools=OPENAI_TOOLS, tool_choice=choice
    )
    (call,) = answer.choices[0].message.tool_calls or ()
    assert (call.type, call.function.name) == ("function", "f")
    assert json.loads(call.function.arguments) == {"x": 1}
    assert scene.provider.last().json["tool_choice"] == sent[kind]


@pytest.mark.parametrize(("choice", "names"), [("none", []), ("named", ["f"]), ("required", ["f", "g"])])
def test_runtimes_cannot_be_forced_but_are_offered_less(
    scene: Scene, openai_client: openai.OpenAI, choice: str, names: list[str]
) -> None:
    wanted: Any = {"type": "function", "function": {"name": "f"}} if choice == "named" else choice
    openai_client.chat.completions.create(model="l.m", messages=HI, tools=OPENAI_TOOLS, tool_choice=wanted)
    offered = scene.provider.last().json.get("tools", [])
    assert [tool["function"]["name"] for tool in offered] == names


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_one_tool_at_a_time(scene: Scene, openai_client: openai.OpenAI, kind: str) -> None:
    openai_client.chat.completions.create(
        model=model_of(kind), messages=HI, tools=OPENAI_TOOLS, parallel_tool_calls=False
    )
    sent = scene.provider.last().json
    if kind == "openai":
        assert sent["parallel_tool_calls"] is False
    else:
        assert sent["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_the_arguments_that_the_helper_parsed(scene: Scene, openai_client: openai.OpenAI) -> None:
    for kind in KINDS:
        scene.provider.script(SAYINGS["text and parallel tool calls"].reply(kind, stream=True))
        with openai_client.chat.completions.stream(
            model=model_of(kind), messages=HI, tools=OPENAI_TOOLS
        ) as events:
            done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
        assert [(event.name, event.index) for event in done] == [("f", 0), ("g", 1)]


def test_a_picture_by_its_address_is_for_those_who_can_fetch_it(
    scene: Scene, openai_client: openai.OpenAI
) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": "what?"}, picture]}]
    openai_client.chat.completions.create(model="a.m", messages=messages)
    sent = scene.provider.last().json["messages"][0]["content"][1]
    assert sent == {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}
    with pytest.raises(openai.BadRequestError, match="image"):
        openai_client.chat.completions.create(model="l.m", messages=messages)
    picture["image_url"]["url"] = f"data:image/png;base64,{PNG}"  # type: ignore[index]
    openai_client.chat.completions.create(model="l.m", messages=messages)
    assert scene.provider.last().json["messages"][0]["images"] == [PNG]


# Raw answers, and many at once ---------------------------------------------------------------------------


def test_the_raw_answer(scene: Scene, openai_client: openai.OpenAI) -> None:
    raw = openai_client.chat.completions.with_raw_response.create(model="o.m", messages=HI)
    assert raw.status_code == 200
    assert raw.headers["content-type"] == "application/json"
    answer = raw.parse()
    assert answer.choices[0].message.content == "Hello from m"
    assert answer._request_id == raw.headers["x-request-id"] != ""


def test_the_raw_stream(scene: Scene, openai_client: openai.OpenAI) -> None:
    chats = openai_client.chat.completions.with_streaming_response
    with chats.create(model="o.m", messages=HI, stream=True) as raw:
        assert raw.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in raw.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert all(line.startswith("data: ") for line in lines)


async def test_many_at_once_are_not_mixed_up(scene: Scene) -> None:
    scene.provider.script()
    async with openai.AsyncOpenAI(
        base_url=f"{scene.url}/v1", api_key=scene.key, max_retries=0, timeout=SECONDS
    ) as client:

        async def one(kind: str, name: str) -> str:
            stream = await client.chat.completions.create(
                model=PREFIXES[kind] + name, messages=HI, stream=True
            )
            async with stream:
                return "".join(
                    [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
                )

        asked = [(kind, name) for kind in KINDS for name in ("m", "n")] * 5
        told = await asyncio.gather(*(one(kind, name) for kind, name in asked))
    assert told == [f"Hello from {name}" for _, name in asked]


async def test_a_client_that_leaves_is_noticed(scene: Scene) -> None:
    from_here = SAYINGS["text"].reply("openai", stream=True)
    scene.provider.script(Reply(steps=[*from_here.steps[:2], SILENCE]))
    async with openai.AsyncOpenAI(
        base_url=f"{scene.url}/v1", api_key=scene.key, max_retries=0, timeout=SECONDS
    ) as client:
        stream = await client.chat.completions.create(model="o.m", messages=HI, stream=True)
        async with stream:
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
    await asyncio.to_thread(scene.provider.wait_closed, 5)


# Lists and vectors -----------------------------------------------------------------------------------------


def test_models(openai_client: openai.OpenAI) -> None:
    models = {model.id: model for model in openai_client.models.list()}
    assert set(models) >= {"o.m", "o.n", "a.m", "l.m"}
    for name in ("o.m", "a.m", "l.m"):
        assert models[name].object == "model"
        assert isinstance(models[name].created, int)
        assert models[name].owned_by
        assert openai_client.models.retrieve(name) == models[name]


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_vectors(scene: Scene, openai_client: openai.OpenAI, kind: str) -> None:
    model_id = model_of(kind)
    # The client asks for base64 unless it is told, and decodes.
    packed = openai_client.embeddings.create(model=model_id, input=["a", "b"])
    plain = openai_client.embeddings.create(model=model_id, input=["a", "b"], encoding_format="float")
    assert [item.index for item in packed.data] == [0, 1]
    assert packed.data[0].embedding != packed.data[1].embedding
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, rel=1e-6)
    assert packed.model == model_id
    raw = openai_client.embeddings.with_raw_response.create(
        model=model_id, input="a", encoding_format="base64"
    )
    assert b'"embedding":"' in raw.content.replace(b" ", b"")


def test_more_vectors_than_a_provider_is_asked_for_at_once(
    scene: Scene, openai_client: openai.OpenAI
) -> None:
    texts = [str(number) for number in range(130)]
    many = openai_client.embeddings.create(model="o.m", input=texts).data
    one = openai_client.embeddings.create(model="o.m", input="129").data[0]
    assert [item.index for item in many] == list(range(130))
    assert many[129].embedding == one.embedding


# Other resources -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]])
def test_tokens_are_for_providers_that_take_them(
    scene: Scene, openai_client: openai.OpenAI, tokens: list[int] | list[list[int]]
) -> None:
    with pytest.raises(openai.BadRequestError, match="no lists of tokens") as caught:
        openai_client.embeddings.create(model=model_of("ollama"), input=tokens)
    assert caught.value.param == "input"
    count = len(tokens) if isinstance(tokens[0], list) else 1
    assert len(openai_client.embeddings.create(model=model_of("openai"), input=tokens).data) == count


def test_completions_of_old(scene: Scene, openai_client: openai.OpenAI) -> None:
    choice = {"index": 0, "text": " world", "logprobs": None, "finish_reason": "stop"}
    whole = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    scene.provider.script(json_reply(whole))
    assert openai_client.completions.create(model="o.m", prompt="Hello").choices[0].text == " world"
    assert scene.provider.last().path == "/v1/completions"
    assert scene.provider.last().json["model"] == "m"
    pieces = [{**whole, "choices": [{**choice, "text": text}]} for text in (" wor", "ld")]
    scene.provider.script(Reply(steps=[*map(sse, pieces), sse(b"[DONE]")]))
    with openai_client.completions.create(model="o.m", prompt="Hello", stream=True) as stream:
        assert "".join(part.choices[0].text for part in stream) == " world"


def response(text: str) -> dict[str, Any]:
    """Return an answer of the Responses protocol."""
    content = {"type": "output_text", "text": text, "annotations": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def test_responses(scene: Scene, openai_client: openai.OpenAI) -> None:
    scene.provider.script(json_reply(response("Hello")))
    assert openai_client.responses.create(model="o.m", input="hi").output_text == "Hello"
    assert scene.provider.last().path == "/v1/responses"
    delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": {**response(""), "output": [], "status": "in_progress"}},
        {**delta, "delta": "Hel", "logprobs": []},
        {**delta, "delta": "lo", "logprobs": []},
        {"type": "response.completed", "response": response("Hello")},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    steps = [b"event: %s\n" % event["type"].encode() + sse(event) for event in numbered]
    scene.provider.script(Reply(steps=steps))
    with openai_client.responses.create(model="o.m", input="hi", stream=True) as stream:
        told = list(stream)
    assert [event.type for event in told] == [event["type"] for event in events]
    assert "".join(event.delta for event in told if event.type == delta["type"]) == "Hello"


def test_a_response_that_breaks_off_raises(scene: Scene, openai_client: openai.OpenAI) -> None:
    begun = {"type": "response.created", "sequence_number": 0, "response": response("")}
    scene.provider.script(Reply(steps=[b"event: response.created\n" + sse(begun), CUT]))
    with (
        pytest.raises(openai.APIError, match="'hosted'"),
        openai_client.responses.create(model="o.m", input="hi", stream=True) as stream,
    ):
        list(stream)
