"""A conversation with tools and thinking that changes its provider at every request, in four dialects.

The providers refuse as the originals do; none of them may refuse, or see what another one thought.
"""

import random
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.reasoning_marks import mark_of
from gatewayd.dialects import openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.ollama import dialect as ollama
from gatewayd.dialects.ollama.dialect import ReplyTiming
from gatewayd.dialects.ollama.stream import ChatLines
from gatewayd.dialects.responses import request as responses
from gatewayd.dialects.responses.items import InputReader
from gatewayd.dialects.responses.sealed import UserSeal
from gatewayd.dialects.responses.stream import ResponseStream
from gatewayd.encryption import TextCipher
from gatewayd.http.public.completions.messages import ConvertedMessageFrames
from gatewayd.pipeline.pipeline import NoFilterChain, NoFilters, NoTools, Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.strict.base import StrictRefusalError
from tests.fakes.providers.strict.gemini import SIGNATURE
from tests.fakes.providers.strict.gemini_chat import sign
from tests.fakes.providers.strict.native_thinkers import ResponsesThinker
from tests.fakes.providers.strict.signed_thoughts import check as check_signed
from tests.fakes.providers.strict.signed_thoughts import signature
from tests.fakes.providers.strict.thinkers import (
    MAKER_OF,
    THINKERS,
    TOOL,
    AnyThinker,
    start_thinkers,
    thought,
)

Object = dict[str, Any]

SYSTEM = "Use the tool."
MODELS = {**{name: thinker.model for name, thinker in THINKERS.items()}, "anthropic": "claude-sonnet-4-5"}
NATIVE = {"sealing": "gpt-6-astra", "signing": "gemini-3-flash", "deepseek": "deepseek-v4"}
NATIVE["anthropic"] = MODELS["anthropic"]
KINDS = {"anthropic": SourceKind.ANTHROPIC, "signing": SourceKind.GEMINI}
KEYS = {"sealing": "sk-right", "signing": "AIza-right"}


class IdleFilter:
    """Changes nothing, but makes the gateway convert each request."""

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        return

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
        return NoFilterChain(inlets=(self,))  # type: ignore[arg-type]

    async def are_on(self, model_id: str) -> bool:
        return True


class World:
    """The gateway's pipeline over all providers, without filters and with one."""

    def __init__(self, catalog: Catalog, providers: Mapping[str, AnyThinker]) -> None:
        self.pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        self.filtered = Pipeline(catalog, IdleFilter(), NoAttachments(), NoTools())
        self.providers = providers

    async def run(self, chat: ChatRequest, *, is_filtered: bool = False) -> ChatAnswer:
        chat.request_id = ids.new_id()
        return await (self.filtered if is_filtered else self.pipeline).run(chat, make_actor())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        providers = await start_thinkers(stack)
        tasks = TaskRegistry()
        stack.push_async_callback(tasks.close)
        sources = []
        for name, provider in providers.items():
            config = ProviderConfig(
                name,
                KINDS.get(name, SourceKind.OPENAI),
                provider.openai_url if isinstance(provider, ResponsesThinker) else provider.base_url,
                key=KEYS.get(name),
                prefix=f"{name}.",
                maker=MAKER_OF.get(name, name),
            )
            sources.append(open_source(config))
            stack.push_async_callback(sources[-1].close)
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use(sources)
        await catalog.list_all()
        yield World(catalog, providers)


async def events_of(answer: ChatAnswer) -> list[Object]:
    assert answer.chunks is not None
    return [event async for chunk in answer.chunks for event in chunk.events]


class OpenAiClient:
    """Sends back the whole message of an answer."""

    def __init__(self, world: World, *, stream: bool) -> None:
        self._world = world
        self._stream = stream
        self.messages: list[Object] = [{"role": "system", "content": SYSTEM}]

    async def ask(self, model: str, number: int) -> None:
        last = self.messages[-1]
        if last.get("tool_calls"):
            for call in last["tool_calls"]:
                self.messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": f"result {number}"}
                )
        else:
            self.messages.append({"role": "user", "content": f"question {number}"})
        asked: Object = {"model": model, "messages": self.messages, "stream": self._stream}
        asked["tools"] = [{"type": "function", "function": TOOL}]
        if self._stream:
            asked["stream_options"] = {"include_usage": True}
        answer = await self._world.run(openai.parse_request(orjson.loads(orjson.dumps(asked))))
        self.messages.append(self.kept(await self._message(answer)))

    def kept(self, message: Object) -> Object:
        return message

    async def _message(self, answer: ChatAnswer) -> Object:
        if answer.completion is not None:
            message: Object = answer.completion.body["choices"][0]["message"]
            return message
        message = {"role": "assistant"}
        for event in await events_of(answer):
            for choice in event["choices"]:
                for name, value in choice["delta"].items():
                    if isinstance(value, str) and isinstance(message.get(name), str) and name != "role":
                        message[name] += value
                    elif isinstance(value, list) and name == "tool_calls" and name in message:
                        message[name][-1]["function"]["arguments"] += value[0]["function"]["arguments"]
                    elif value is not None:
                        message[name] = value
        for call in message.get("tool_calls", ()):
            call.pop("index", None)
            call["type"] = "function"
        return message


class ForgetfulClient(OpenAiClient):
    """Sends back only what the protocol defines, as many programs do."""

    def kept(self, message: Object) -> Object:
        calls = [
            {name: call[name] for name in ("id", "type", "function")}
            for call in message.get("tool_calls") or ()
        ]
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


class AnthropicClient:
    """Sends back all blocks."""

    is_filtered = False

    def __init__(self, world: World, *, stream: bool) -> None:
        self._world = world
        self._stream = stream
        self.messages: list[Object] = []

    async def ask(self, model: str, number: int) -> None:
        last = self.messages[-1]["content"] if self.messages else []
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": f"result {number}"}
            for block in last
            if block["type"] == "tool_use"
        ]
        self.messages.append({"role": "user", "content": results or f"question {number}"})
        asked: Object = {"model": model, "messages": self.messages, "stream": self._stream}
        asked |= {
            "system": SYSTEM,
            "max_tokens": 4096,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
        }
        tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
        chat = anthropic.parse_request(orjson.loads(orjson.dumps({**asked, "tools": [tool]})))
        answer = await self._world.run(chat, is_filtered=self.is_filtered)
        self.messages.append({"role": "assistant", "content": await self._blocks(chat, answer)})

    async def _blocks(self, chat: ChatRequest, answer: ChatAnswer) -> list[Object]:
        if answer.completion is None:
            return await self._streamed(chat, answer)
        body = answer.completion.body
        if not answer.is_native:
            body = anthropic.render_completion(body, chat.model, ids.new_id, mark=mark_of(answer.origin))
        blocks: list[Object] = body["content"]
        return blocks

    async def _streamed(self, chat: ChatRequest, answer: ChatAnswer) -> list[Object]:
        assert answer.chunks is not None
        frames = ConvertedMessageFrames(chat, answer)
        raw = b""
        async for chunk in answer.chunks:
            raw += chunk.raw if answer.is_native else frames.feed(chunk)
        raw += b"" if answer.is_native else frames.finish()
        blocks: list[Object] = []
        for line in raw.split(b"\n"):
            event = orjson.loads(line[5:]) if line.startswith(b"data:") else {}
            if event.get("type") == "content_block_start":
                blocks.append({**event["content_block"]})
                blocks[-1].pop("input", None)
            elif event.get("type") == "content_block_delta":
                self._add(blocks[-1], event["delta"])
        for block in blocks:
            if block["type"] == "tool_use":
                block["input"] = orjson.loads(block.pop("partial_json"))
        return blocks

    def _add(self, block: Object, delta: Object) -> None:
        if delta["type"] == "signature_delta":
            block["signature"] = delta["signature"]
            return
        for name in delta.keys() - {"type"}:
            block[name] = block.get(name, "") + delta[name]


class FilteredClient(AnthropicClient):
    """Its requests to the source of its own protocol are converted too."""

    is_filtered = True


class OllamaClient:
    """Sends back what the client library keeps: no ids of calls."""

    def __init__(self, world: World, *, stream: bool) -> None:
        self._world = world
        self._stream = stream
        self.messages: list[Object] = [{"role": "system", "content": SYSTEM}]

    async def ask(self, model: str, number: int) -> None:
        if self.messages[-1].get("tool_calls"):
            self.messages.append({"role": "tool", "tool_name": "look", "content": f"result {number}"})
        else:
            self.messages.append({"role": "user", "content": f"question {number}"})
        asked = {"model": model, "messages": self.messages, "stream": self._stream, "think": True}
        asked["tools"] = [{"type": "function", "function": TOOL}]
        answer = await self._world.run(ollama.parse_chat(orjson.loads(orjson.dumps(asked))))
        self.messages.append(await self._message(answer, model))

    async def _message(self, answer: ChatAnswer, model: str) -> Object:
        timing = ReplyTiming(1, 1)
        if answer.completion is not None:
            replies = [ollama.render_chat(answer.completion.body, model, timing)]
        else:
            lines = ChatLines(model, generate=False, clock=lambda: 1)
            raw = lines.feed(await events_of(answer)) + lines.finish(timing)
            replies = [orjson.loads(line) for line in raw.splitlines()]
        message: Object = {"role": "assistant", "content": ""}
        for reply in replies:
            for name, value in reply["message"].items():
                if name == "tool_calls":
                    message[name] = [{"function": call["function"]} for call in value]
                elif name != "role":
                    message[name] = message.get(name, "") + value
        return message


class ResponsesClient:
    """Keeps the items itself, with the reasoning that the gateway encrypted for it."""

    def __init__(self, world: World, *, stream: bool) -> None:
        self._world = world
        self._stream = stream
        self._seal = UserSeal(TextCipher(b"secret", b"test"), "u1")
        self._items: list[Object] = []

    async def ask(self, model: str, number: int) -> None:
        last = self._items[-1] if self._items else {}
        if last.get("type") == "function_call":
            result = {
                "type": "function_call_output",
                "call_id": last["call_id"],
                "output": f"result {number}",
            }
            self._items.append(result)
        else:
            self._items.append({"role": "user", "content": f"question {number}"})
        asked: Object = {"model": model, "input": self._items, "instructions": SYSTEM, "stream": self._stream}
        asked |= {"tools": [{"type": "function", **TOOL}], "store": False}
        request = responses.parse_request({**asked, "include": ["reasoning.encrypted_content"]})
        reader = InputReader(request.names, self._seal, request.left_out)
        for index, item in enumerate(orjson.loads(orjson.dumps(self._items))):
            reader.add(item, f"input[{index}]")
        answer = await self._world.run(request.chat_request([*request.head_messages(), *reader.finish()]))
        stream = ResponseStream(request, "resp_1", self._seal, ids.new_id, lambda: 1)
        stream.origin = answer.origin
        if answer.completion is None:
            stream.feed(await events_of(answer))
        else:
            stream.feed_whole(answer.completion.body)
        stream.finish()
        # The reasoning may end the answer of some makers; a call is what the next request goes on with.
        self._items += sorted(stream.output, key=lambda item: item["type"] == "function_call")


CLIENTS = {
    "responses": ResponsesClient,
    "openai": OpenAiClient,
    "openai, forgetful": ForgetfulClient,
    "anthropic": AnthropicClient,
    "anthropic, filtered": FilteredClient,
    "ollama": OllamaClient,
}


def changing(models: Mapping[str, str], rounds: int) -> list[str]:
    """The models of all providers in each round, never of the same one twice in a row."""
    chance, order = random.Random(7), []
    for _ in range(rounds):
        names = chance.sample(sorted(models), len(models))
        order += names[::-1] if order and order[-1] == names[0] else names
    return [f"{name}.{models[name]}" for name in order]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_no_refusal_and_no_leak(world: World, client: str, stream: bool) -> None:
    talk = CLIENTS[client](world, stream=stream)
    for number, model in enumerate(changing(MODELS, 4)):
        await talk.ask(model, number)
    for name in MODELS:
        assert world.providers[name].refused == []
        check_reasoning(name, world.providers[name])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_other_protocols(world: World, client: str, stream: bool) -> None:
    """The encrypted reasoning of the Responses protocol, and the signatures of Gemini's own one."""
    talk = CLIENTS[client](world, stream=stream)
    for number, model in enumerate(changing(NATIVE, 6)):
        await talk.ask(model, number)
    for name in NATIVE:
        provider = world.providers[name]
        assert provider.refused == []
        check_leaks(name, provider)
    sealed = [
        item for item in world.providers["sealing"].answered[-1]["input"] if "encrypted_content" in item
    ]
    contents = world.providers["signing"].answered[-1]["contents"]
    calls = [part for content in contents for part in content["parts"] if "functionCall" in part]
    own = [part for part in calls if part["functionCall"]["args"]["maker"] == "signing"]
    assert sealed
    assert own
    assert all(part["thoughtSignature"] == SIGNATURE for part in own)


def check_reasoning(name: str, provider: AnyThinker) -> None:
    """Assert that a provider got its own reasoning, as it wants it, and nothing that others thought."""
    check_leaks(name, provider)
    for body in provider.answered:
        for message in body["messages"]:
            check_message(name, message)


def check_leaks(name: str, provider: AnyThinker) -> None:
    """Assert that a provider got nothing that others thought, and no mark."""
    maker = MAKER_OF.get(name, name)
    for body in provider.answered:
        thinkers = set(re.findall(r"(\w+) thinks \d+", orjson.dumps(body).decode()))
        assert {MAKER_OF.get(each, each) for each in thinkers} <= {maker}
        assert mark_of("").encode() not in orjson.dumps(body)


def check_message(name: str, message: Object) -> None:
    """Assert that a message with a call has the reasoning that its provider demands."""
    for call in message.get("tool_calls") or ():
        made = orjson.loads(call["function"]["arguments"])
        own = thought(name, made["number"]) if made["maker"] == name else None
        match name:
            case "deepseek" | "kimi":
                assert message["reasoning_content"] == (own or "unavailable")
            case "gemini":
                sent = call["extra_content"]["google"]["thought_signature"]
                assert sent == (sign(call) if own else "skip_thought_signature_validator")
            case "openrouter":
                assert message.get("reasoning") == own
                details = [detail["signature"] for detail in message.get("reasoning_details", ())]
                assert details == ([f"signature of {own}"] if own else [])


FOREIGN_CALL: Object = {
    "id": "functions.look:0",
    "type": "function",
    "function": {"name": "look", "arguments": '{"maker":"somebody","number":1}'},
}
FOREIGN: list[Object] = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [FOREIGN_CALL]},
    {"role": "tool", "tool_call_id": "functions.look:0", "content": "r"},
    {"role": "user", "content": "b"},
]


@pytest.mark.parametrize("name", sorted(THINKERS))
def test_the_providers_refuse_what_others_said(name: str) -> None:
    """Without the gateway the same conversation fails, but at a router of providers."""
    thinker = THINKERS[name]
    body = {"model": thinker.model, "messages": FOREIGN}
    refused = 0
    for check in thinker.checks:
        try:
            check(orjson.loads(orjson.dumps(body)))
        except StrictRefusalError:
            refused += 1
    assert bool(refused) == (name != "openrouter")


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "thinking", "thinking": "hm"}],
        [{"type": "thinking", "thinking": "hm", "signature": ""}],
        [{"type": "thinking", "thinking": "hm", "signature": mark_of("deepseek")}],
        [{"type": "text", "text": " "}],
        [],
        [{"type": "tool_use", "id": "functions.look:0", "name": "look", "input": {}}],
        [{"type": "tool_use", "id": "a", "name": "look", "input": {}}],
    ],
)
def test_the_signing_provider_refuses(blocks: list[Object]) -> None:
    messages = [{"role": "assistant", "content": blocks}, {"role": "user", "content": "a"}]
    with pytest.raises(StrictRefusalError):
        check_signed({"messages": messages})


async def test_an_anthropic_source_gets_its_own_thinking_back(world: World) -> None:
    """Also when the request is converted, from clients that have no place for signatures."""
    for client in (OpenAiClient, ForgetfulClient, AnthropicClient, FilteredClient, OllamaClient):
        talk = client(world, stream=False)
        provider = world.providers["anthropic"]
        for number in range(3):
            await talk.ask("anthropic.claude-sonnet-4-5", number)
        assert provider.refused == []
        sent = [block for message in provider.answered[-1]["messages"] for block in message["content"]]
        kept = [block for block in sent if isinstance(block, dict) and block["type"] == "thinking"]
        # The one before a text is not remembered for a client that drops it; the provider does not demand it.
        assert len(kept) == (1 if client is ForgetfulClient else 2), client
        assert all(block["signature"] == signature(block["thinking"]) for block in kept)


async def test_another_user_gets_no_reasoning(world: World) -> None:
    """A history that somebody else sends has the placeholder, not what the first user's model thought."""
    talk = ForgetfulClient(world, stream=False)
    await talk.ask("deepseek.deepseek-v4", 0)
    call = talk.messages[-1]["tool_calls"][0]
    asked = [*talk.messages, {"role": "tool", "tool_call_id": call["id"], "content": "r"}]
    chat = openai.parse_request({"model": "deepseek.deepseek-v4", "messages": asked})
    await world.pipeline.run(chat, make_actor("u2"))
    provider = world.providers["deepseek"]
    assert provider.answered[-1]["messages"][-2]["reasoning_content"] == "unavailable"
