"""A provider on loopback (or a unix socket) that answers as it is told, in the shapes of three protocols.

    async with FakeUpstream() as fake:
        fake.script(Reply(steps=[sse({"choices": []}), SILENCE]))
        ...                    # a source with base_url=fake.openai_url streams
        await fake.closed.wait()   # its connection was closed in the middle of the answer

Without a script it answers "Hello from <model>" in the shape of the path, streamed or not. `closed`
is set when a client leaves before the answer is over, `silent` when an answer comes to a `SILENCE`. Replies
in `chats` are for POST requests alone, those in `listings` for GET.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import orjson
from aiohttp import web


class Step(Enum):
    """What a reply may do between two writes."""

    SILENCE = "silence"
    CUT = "cut"


SILENCE = Step.SILENCE
"""Say nothing more until `release` is set or the client leaves."""

CUT = Step.CUT
"""Abort the connection."""

NO_SUCH_PATH = "no such path"
"""How the refusal of a path that no rule is for begins."""


@dataclass
class Reply:
    """One scripted answer: `before` comes before the status line, `steps` are the writes of the body."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[bytes | Step] = ()
    before: Step | None = None
    content_type: str = "text/event-stream"


@dataclass(frozen=True)
class Recorded:
    """One request as it came in; `peer` tells connections apart."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    peer: object

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


def json_reply(body: Any, status: int = 200, **headers: str) -> Reply:
    """Return a JSON answer; underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, [orjson.dumps(body)], content_type="application/json")


def sse(*payloads: Any, end: bytes = b"\n\n") -> bytes:
    """Return `data:` events; bytes are taken as they are, all else is written as JSON."""
    texts = [item if isinstance(item, bytes) else orjson.dumps(item) for item in payloads]
    return b"".join(b"data: " + text + end for text in texts)


def ndjson(*objects: Any) -> bytes:
    """Return JSON lines."""
    return b"".join(orjson.dumps(item) + b"\n" for item in objects)


def openai_completion(text: str, model: str = "m", **message: Any) -> dict[str, Any]:
    """Return a whole chat completion."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "logprobs": None,
        "finish_reason": "stop",
    }
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def openai_chunk(model: str = "m", finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """Return one chat.completion.chunk."""
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}],
    }


def openai_stream(words: Sequence[str], model: str = "m") -> list[bytes]:
    """Return the writes of a whole stream, one event each, with the final [DONE]."""
    chunks = [openai_chunk(model, content=word) for word in words]
    return [*map(sse, chunks), sse(openai_chunk(model, "stop")), sse(b"[DONE]")]


def anthropic_message(text: str, model: str = "m", **fields: Any) -> dict[str, Any]:
    """Return a whole Anthropic message."""
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
        **fields,
    }


def anthropic_events(*events: Mapping[str, Any]) -> bytes:
    """Return events with their `event:` lines, as Anthropic sends them."""
    return b"".join(b"event: %s\n%s" % (event["type"].encode(), sse(event)) for event in events)


def anthropic_stream(words: Sequence[str], model: str = "m") -> list[bytes]:
    """Return the writes of a whole message stream."""
    start = anthropic_message("", model, content=[], stop_reason=None)
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in words
    ]
    return [
        anthropic_events({"type": "message_start", "message": start}),
        anthropic_events(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        ),
        anthropic_events({"type": "ping"}),
        *map(anthropic_events, deltas),
        anthropic_events({"type": "content_block_stop", "index": 0}),
        anthropic_events(
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
        ),
        anthropic_events({"type": "message_stop"}),
    ]


def ollama_reply(text: str, model: str = "m", *, done: bool = True, **message: Any) -> dict[str, Any]:
    """Return one object of the runtime's chat answer."""
    reply = {
        "model": model,
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": text, **message},
        "done": done,
    }
    if done:
        reply |= {"done_reason": "stop", "total_duration": 9, "prompt_eval_count": 3, "eval_count": 2}
    return reply


def ollama_stream(words: Sequence[str], model: str = "m") -> list[bytes]:
    """Return the writes of a whole runtime stream."""
    return [
        *(ndjson(ollama_reply(word, model, done=False)) for word in words),
        ndjson(ollama_reply("", model)),
    ]


class FakeUpstream:
    """The server. `models` are the ids that it lists."""

    def __init__(self, models: Sequence[str] = ("m",)) -> None:
        self.models = list(models)
        self.requests: list[Recorded] = []
        self.closed = asyncio.Event()
        self.silent = asyncio.Event()
        self.release = asyncio.Event()
        self.base_url = ""
        self.chats: list[Reply] = []
        self.listings: list[Reply] = []
        self._replies: list[Reply] = []
        self._runner: web.AppRunner | None = None

    @property
    def openai_url(self) -> str:
        """The base URL of the OpenAI-compatible side."""
        return f"{self.base_url}/v1"

    def script(self, *replies: Reply) -> None:
        """Answer the next requests with these, one each, whatever their path."""
        self._replies += replies

    async def start(self, socket_path: str | None = None) -> None:
        """Listen on a free loopback port, or on a unix socket."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        if socket_path is not None:
            await web.UnixSite(self._runner, socket_path).start()
            self.base_url = "http://localhost"
            return
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"

    async def stop(self) -> None:
        """Close the port and all connections."""
        self.release.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        peer = request.transport and request.transport.get_extra_info("peername")
        recorded = Recorded(
            request.method, request.path, dict(request.query), request.headers.copy(), body, peer
        )
        self.requests.append(recorded)
        scripted = self._replies or (self.listings if recorded.method == "GET" else self.chats)
        reply = scripted.pop(0) if scripted else self._default(recorded)
        try:
            return await self._play(request, reply)
        except (asyncio.CancelledError, ConnectionError):
            self.closed.set()
            raise

    async def _play(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.before is not None:
            await self._step(request, reply.before)
        response = web.StreamResponse(status=reply.status, headers=dict(reply.headers))
        if reply.content_type:
            response.content_type = reply.content_type
        await response.prepare(request)
        for step in reply.steps:
            if isinstance(step, bytes):
                await response.write(step)
            else:
                await self._step(request, step)
        await response.write_eof()
        return response

    async def _step(self, request: web.Request, step: Step) -> None:
        if step is CUT:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError
        self.silent.set()
        await self.release.wait()

    def _default(self, request: Recorded) -> Reply:
        match request.method, request.path:
            case "GET", "/v1/models" | "/models":
                return json_reply({"object": "list", "data": [self._listed(name) for name in self.models]})
            case "GET", "/api/tags":
                return json_reply({"models": [self._tag(name) for name in self.models]})
            case "GET", "/api/ps":
                return json_reply({"models": [{**self._tag(name), "size_vram": 1} for name in self.models]})
            case "POST", "/v1/chat/completions" | "/chat/completions":
                return self._answer(request, openai_completion, openai_stream)
            case "POST", "/v1/messages":
                return self._answer(request, anthropic_message, anthropic_stream)
            case "POST", "/api/chat":
                return self._answer(request, ollama_reply, ollama_stream, default=True)
            case "POST", "/v1/embeddings" | "/api/embed":
                return self._embeddings(request)
            case _:
                return json_reply({"error": {"message": f"{NO_SUCH_PATH} {request.path}"}}, 404)

    def _answer(self, request: Recorded, whole: Any, stream: Any, *, default: bool = False) -> Reply:
        body = request.json
        model = body.get("model", "m")
        if body.get("stream", default):
            media_type = "application/x-ndjson" if stream is ollama_stream else "text/event-stream"
            return Reply(steps=stream(["Hello", " from ", model], model), content_type=media_type)
        return json_reply(whole(f"Hello from {model}", model))

    def _embeddings(self, request: Recorded) -> Reply:
        given = request.json["input"]
        texts = [given] if isinstance(given, str) else given
        vectors = [[byte / 255 for byte in hashlib.sha256(str(text).encode()).digest()] for text in texts]
        if request.path == "/api/embed":
            return json_reply({"model": request.json["model"], "embeddings": vectors})
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return json_reply({"object": "list", "data": data, "model": request.json["model"]})

    def _listed(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "fake"}

    def _tag(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "model": name,
            "modified_at": "2026-01-01T00:00:00Z",
            "size": 1,
            "digest": "0" * 64,
            "details": {"family": "fake"},
        }
