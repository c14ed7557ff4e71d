"""A provider of every protocol that tells random usage, and keeps the sums of what it told."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

MODEL = "m"
Frames = list[dict[str, Any]]


class TellingProvider:
    """Answers at `url`; `prompt`, `cached`, `written`, `completion` and `reasoning` are what it told."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.requests = 0
        self.told = dict.fromkeys(("prompt", "cached", "written", "completion", "reasoning"), 0)
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["TellingProvider"]:
        app = web.Application(client_max_size=2**24)
        app.router.add_get("/{path:.*}", self._list)
        app.router.add_post("/{path:.*}", self._answer)
        async with TestServer(app) as server:
            self.url = str(server.make_url("")).rstrip("/")
            yield self

    def _tell(self, *, answers: bool = True, written: bool = False) -> dict[str, int]:
        pick = self._random.randint
        prompt = pick(1, 2**20)
        used = {
            "prompt": prompt,
            "cached": pick(0, prompt // 2),
            "written": 0,
            "completion": 0,
            "reasoning": 0,
        }
        if written:
            used["written"] = pick(0, prompt // 4)
        if answers:
            used["completion"] = pick(1, 2**16)
            used["reasoning"] = pick(0, used["completion"])
        return used

    def _told(self, used: dict[str, int]) -> None:
        for name, count in used.items():
            self.told[name] += count

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/api/tags"):
            return web.json_response({"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest"}]})
        models = [{"id": MODEL, "object": "model"}]
        named = [{"name": f"models/{MODEL}", "supportedGenerationMethods": ["generateContent"]}]
        return web.json_response({"data": models, "models": named, "has_more": False})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        raw = await request.read()
        body = json.loads(raw) if request.content_type == "application/json" else {}
        path = request.path
        for ending, make in (
            ("/chat/completions", self._chat),
            ("/completions", self._text),
            ("/messages", self._message),
            ("/responses", self._response),
            (":generateContent", self._gemini),
            (":streamGenerateContent", self._gemini),
            ("/api/chat", self._runtime),
            ("/api/generate", self._runtime),
            ("/api/embed", self._runtime_vectors),
        ):
            if path.endswith(ending):
                is_stream = body.get("stream", path.startswith("/ollama")) or "stream" in ending
                frames = make(body, bool(is_stream))
                if not is_stream:
                    return web.json_response(frames[0])
                return await self._stream(request, frames, is_lines="/api/" in path)
        return web.json_response(self._other(path, body))

    async def _stream(self, request: web.Request, frames: Frames, *, is_lines: bool) -> web.StreamResponse:
        reply = web.StreamResponse()
        reply.content_type = "application/x-ndjson" if is_lines else "text/event-stream"
        await reply.prepare(request)
        for frame in frames:
            text = json.dumps(frame)
            await reply.write(f"{text}\n".encode() if is_lines else f"data: {text}\n\n".encode())
        if "chat" in request.path or "completions" in request.path:
            await reply.write(b"" if is_lines else b"data: [DONE]\n\n")
        return reply

    def _usage(self, used: dict[str, int]) -> dict[str, Any]:
        self._told(used)
        return {
            "prompt_tokens": used["prompt"],
            "completion_tokens": used["completion"],
            "total_tokens": used["prompt"] + used["completion"],
            "prompt_tokens_details": {"cached_tokens": used["cached"]},
            "completion_tokens_details": {"reasoning_tokens": used["reasoning"]},
        }

    def _chat(self, body: dict[str, Any], is_stream: bool) -> Frames:
        head = {"id": "c", "created": 1, "model": MODEL}
        if not is_stream:
            message = {"role": "assistant", "content": "a"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return [
                {**head, "object": "chat.completion", "choices": [choice], "usage": self._usage(self._tell())}
            ]
        head["object"] = "chat.completion.chunk"
        texts = [{"index": 0, "delta": {"content": "a"}, "finish_reason": None} for _ in range(3)]
        texts.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        frames: Frames = [{**head, "choices": [choice]} for choice in texts]
        if body.get("stream_options", {}).get("include_usage"):
            frames.append({**head, "choices": [], "usage": self._usage(self._tell())})
        return frames

    def _text(self, body: dict[str, Any], is_stream: bool) -> Frames:
        head = {"id": "t", "object": "text_completion", "created": 1, "model": MODEL}
        choice = {"index": 0, "text": "a", "finish_reason": "stop"}
        return [{**head, "choices": [choice], "usage": self._usage(self._tell())}]

    def _message(self, body: dict[str, Any], is_stream: bool) -> Frames:
        used = self._tell(written=True)
        self._told(used)
        first = {
            "input_tokens": used["prompt"] - used["cached"] - used["written"],
            "cache_read_input_tokens": used["cached"],
            "cache_creation_input_tokens": used["written"],
            "output_tokens": 1,
        }
        last = {
            "output_tokens": used["completion"],
            "output_tokens_details": {"thinking_tokens": used["reasoning"]},
        }
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None}
        text = {"type": "text", "text": "a"}
        if not is_stream:
            return [{**head, "content": [text], "stop_reason": "end_turn", "usage": {**first, **last}}]
        begun = {**head, "content": [], "stop_reason": None, "usage": first}
        return [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
            {"type": "message_stop"},
        ]

    def _response(self, body: dict[str, Any], is_stream: bool) -> Frames:
        used = self._tell()
        self._told(used)
        text = {"type": "output_text", "text": "a", "annotations": []}
        item = {"id": "i", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        whole = {
            "id": f"resp_{self.requests}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": MODEL,
            "output": [item],
            "usage": {
                "input_tokens": used["prompt"],
                "input_tokens_details": {"cached_tokens": used["cached"]},
                "output_tokens": used["completion"],
                "output_tokens_details": {"reasoning_tokens": used["reasoning"]},
                "total_tokens": used["prompt"] + used["completion"],
            },
            "metadata": {"usage": "none"},
        }
        if not is_stream:
            return [whole]
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        delta = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": "a"}
        return [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
            {"type": "response.output_text.delta", **delta},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]

    def _gemini(self, body: dict[str, Any], is_stream: bool) -> Frames:
        used = self._tell()
        self._told(used)
        candidate = {
            "content": {"role": "model", "parts": [{"text": "a"}]},
            "finishReason": "STOP",
            "index": 0,
        }
        usage = {
            "promptTokenCount": used["prompt"],
            "cachedContentTokenCount": used["cached"],
            "candidatesTokenCount": used["completion"] - used["reasoning"],
            "thoughtsTokenCount": used["reasoning"],
        }
        return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}]

    def _runtime(self, body: dict[str, Any], is_stream: bool) -> Frames:
        used = {**self._tell(), "cached": 0, "reasoning": 0}
        self._told(used)
        text = {"message": {"role": "assistant", "content": "a"}, "response": "a"}
        done = {"done": True, "done_reason": "stop"}
        counts = {"prompt_eval_count": used["prompt"], "eval_count": used["completion"]}
        head = {"model": MODEL, "created_at": "2026-11-24T00:00:00Z"}
        whole = {**head, **text, **done, **counts}
        return [{**head, **text, "done": False}, whole] if is_stream else [whole]

    def _runtime_vectors(self, body: dict[str, Any], is_stream: bool) -> Frames:
        used = {**self._tell(answers=False), "cached": 0}
        self._told(used)
        vectors = [[0.5, 0.25] for _ in body["input"]]
        return [{"model": MODEL, "embeddings": vectors, "prompt_eval_count": used["prompt"]}]

    def _other(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of an endpoint without an answer of text: vectors, pictures, scores, speech."""
        used = {**self._tell(answers="images" in path or "audio" in path), "cached": 0, "reasoning": 0}
        self._told(used)
        total = used["prompt"] + used["completion"]
        if "embeddings" in path:
            data = [
                {"object": "embedding", "index": place, "embedding": [0.5]}
                for place in range(len(body["input"]))
            ]
            return {"object": "list", "data": data, "usage": {"prompt_tokens": total, "total_tokens": total}}
        usage = {"input_tokens": used["prompt"], "output_tokens": used["completion"], "total_tokens": total}
        if "rerank" in path:
            return {"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": total}}
        if "images" in path:
            return {"created": 1, "data": [{"b64_json": "A" * 300_000}], "usage": usage}
        if "audio" in path:
            return {"text": "a", "usage": {"type": "tokens", **usage}}
        return {"id": "modr", "model": MODEL, "results": [], "usage": usage}
