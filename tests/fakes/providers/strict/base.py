"""A provider on loopback that checks requests as the original does, and refuses in its words.

    async with StrictProvider(openai.known_fields, models=["gpt-5"]) as provider:
        ...                      # a source with base_url=provider.base_url asks
        provider.requests[0].body

`checks` raise `StrictRefusalError` for a body that the original would refuse; a body that passes them all
gets the next scripted answer, or "Hello." in the protocol of chat completions. Other modules of this package
have the checks of each maker; a provider of another protocol overrides `answer`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import orjson
from aiohttp import web

Body = dict[str, Any]


class StrictRefusalError(Exception):
    """A refusal: status and body, a text or what becomes JSON."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})


Check = Callable[[Body], None]
"""Raises `StrictRefusalError` for a body that the original would refuse."""


@dataclass(frozen=True)
class Asked:
    """One request as it came in, refused or not; `refusal` is the answer to a refused one."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Body
    refusal: StrictRefusalError | None = None


def openai_error(message: str, *, param: str | None = None, code: str | None = None) -> Body:
    """The body of an error of OpenAI and its clones."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return {"error": error}


def refuse_unknown(
    body: Mapping[str, Any], known: Iterable[str], refuse: Callable[[str], StrictRefusalError]
) -> None:
    """Raise the refusal of the first field that is not known."""
    for name in body:
        if name not in known:
            raise refuse(name)


def refuse(
    body: Mapping[str, Any], names: Iterable[str], refusal: Callable[[str], StrictRefusalError]
) -> None:
    """Raise the refusal of the first of these fields that a body has."""
    for name in names:
        if body.get(name) is not None:
            raise refusal(name)


class StrictProvider:
    """The provider; see the module."""

    def __init__(
        self,
        *checks: Check,
        models: Sequence[str | Body] = ("m",),
        prefix: str = "/v1",
        owned_by: str = "strict",
    ) -> None:
        self.checks = checks
        self.requests: list[Asked] = []
        self.base_url = ""
        self._models = [
            {"id": model, "object": "model", "created": 1, "owned_by": owned_by}
            if isinstance(model, str)
            else model
            for model in models
        ]
        self._prefix = prefix
        self._scripted: list[Body] = []
        self._runner: web.AppRunner | None = None

    @property
    def refused(self) -> list[StrictRefusalError]:
        """The refusals so far, in order."""
        return [asked.refusal for asked in self.requests if asked.refusal is not None]

    @property
    def answered(self) -> list[Body]:
        """The bodies that were not refused, in order."""
        return [asked.body for asked in self.requests if asked.refusal is None and asked.method == "POST"]

    def script(self, *messages: Body) -> None:
        """Answer the next accepted chat requests with these messages of an assistant."""
        self._scripted += messages

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self.serve)
        self._runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}{self._prefix}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; override `answer` for other paths."""
        body = orjson.loads(await request.read() or b"{}")
        try:
            if request.method == "POST":
                for check in self.checks:
                    check(body)
        except StrictRefusalError as refusal:
            self._note(request, body, refusal)
            text = refusal.body if isinstance(refusal.body, str) else orjson.dumps(refusal.body).decode()
            return web.Response(
                text=text, status=refusal.status, headers=refusal.headers, content_type="application/json"
            )
        self._note(request, body, None)
        return await self.answer(request, body)

    async def answer(self, request: web.Request, body: Body) -> web.StreamResponse:
        """Answer an accepted request."""
        path = request.path.removeprefix(self._prefix)
        if request.method == "GET" and path == "/models":
            return web.json_response({"object": "list", "data": self._models})
        if path != "/chat/completions":
            return web.json_response(openai_error(f"no such path {path}"), status=404)
        message = self._scripted.pop(0) if self._scripted else {"role": "assistant", "content": "Hello."}
        message = {"role": "assistant", "content": None, **message}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        if not body.get("stream"):
            return web.json_response(completion(body.get("model"), message, reason))
        return await self._stream(request, body, message, reason)

    async def _stream(
        self, request: web.Request, body: Body, message: Body, reason: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
        calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls") or ())]
        delta = {**message, **({"tool_calls": calls} if calls else {})}
        frames: list[Body] = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        ]
        if (body.get("stream_options") or {}).get("include_usage"):
            frames.append({**head, "choices": [], "usage": USAGE})
        for frame in frames:
            await response.write(b"data: " + orjson.dumps(frame) + b"\n\n")
            await asyncio.sleep(0)
        await response.write(b"data: [DONE]\n\n")
        return response

    def _note(self, request: web.Request, body: Body, refusal: StrictRefusalError | None) -> None:
        self.requests.append(Asked(request.method, request.path, dict(request.headers), body, refusal))


USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}


def completion(model: object, message: Body, reason: str = "stop") -> Body:
    """A whole chat completion."""
    choice = {"index": 0, "message": message, "finish_reason": reason}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": USAGE}
