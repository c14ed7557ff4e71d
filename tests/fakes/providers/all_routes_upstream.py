"""A scripted provider that has every path the gateway passes on or asks, beside those of `FakeUpstream`."""

from typing import Any

from tests.fakes.providers.upstream import FakeUpstream, Recorded, Reply, json_reply, ndjson, sse

UNKNOWN = "/api/own/thing"
"""A path of a runtime that the gateway does not know."""

DONE = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}


def generate_stream(words: list[str], model: str) -> list[bytes]:
    """Return the writes of a whole generate stream."""
    lines = [{"model": model, "response": word, "done": False} for word in words]
    return [*map(ndjson, lines), ndjson({"model": model, "response": "", **DONE})]


def text_stream(words: list[str], model: str) -> list[bytes]:
    """Return the writes of a whole legacy completion stream."""
    chunks = [
        {
            "id": "c",
            "object": "text_completion",
            "model": model,
            "choices": [{"index": 0, "text": word, "finish_reason": None}],
        }
        for word in words
    ]
    return [*map(sse, chunks), sse(b"[DONE]")]


def response_stream(words: list[str], model: str) -> list[bytes]:
    """Return the writes of a stream of the Responses protocol."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "model": model}},
        *({"type": "response.output_text.delta", "delta": word} for word in words),
        {"type": "response.completed", "response": {"id": "r", "model": model}},
    ]
    return [b"event: %s\n%s" % (event["type"].encode(), sse(event)) for event in events]


class Everything(FakeUpstream):
    """A provider for all routes."""

    def _default(self, request: Recorded) -> Reply:
        if request.path == UNKNOWN:
            return json_reply({"own": True})
        if request.method == "GET":
            return self._got(request) or super()._default(request)
        is_form = request.headers.get("Content-Type", "").startswith("multipart/")
        named: dict[str, Any] = request.json if request.body and not is_form else {}
        model = str(named.get("model", "m"))
        is_streamed = named.get("stream", request.path == "/api/generate")
        return (
            (self._streamed(request.path, model) if is_streamed else self._whole(request.path, model))
            or self._media(request.path)
            or self._runtime(request.path, streams=named.get("stream") is not False)
            or super()._default(request)
        )

    def _got(self, request: Recorded) -> Reply | None:
        match request.path:
            case "/api/ps":
                return json_reply({"models": [self._tag(name) for name in self.models]})
            case "/api/version":
                return json_reply({"version": "0.13.1"})
            case _:
                return None

    def _streamed(self, path: str, model: str) -> Reply | None:
        words = ["Hello", " from ", model]
        match path:
            case "/v1/completions":
                return Reply(steps=text_stream(words, model))
            case "/v1/responses":
                return Reply(steps=response_stream(words, model))
            case "/api/generate":
                return Reply(steps=generate_stream(words, model), content_type="application/x-ndjson")
            case _:
                return None

    def _whole(self, path: str, model: str) -> Reply | None:
        match path:
            case "/v1/completions":
                choice = {"index": 0, "text": f"Hello from {model}", "finish_reason": "stop"}
                return json_reply({"id": "c", "object": "text_completion", "choices": [choice]})
            case "/v1/responses":
                return json_reply(
                    {"id": "r", "object": "response", "created_at": 1, "output": [], "model": model}
                )
            case "/v1/responses/input_tokens":
                return json_reply({"object": "response.input_tokens", "input_tokens": 7})
            case "/v1/responses/compact":
                kept = {"object": "response.compaction", "created_at": 1, "output": [], "usage": {}}
                return json_reply({"id": "r", **kept})
            case "/api/generate":
                return json_reply({"model": model, "response": f"Hello from {model}", **DONE})
            case _:
                return None

    def _media(self, path: str) -> Reply | None:
        """Answer an endpoint of images, audio or moderations, in JSON and whole whatever was asked for."""
        match path:
            case "/v1/images/generations" | "/v1/images/edits":
                return json_reply({"created": 1, "data": [{"b64_json": "aGk="}]})
            case "/v1/audio/speech" | "/v1/audio/transcriptions" | "/v1/audio/translations":
                return json_reply({"text": "hi"})
            case "/v1/rerank":
                return json_reply({"results": [{"index": 0, "relevance_score": 0.5}]})
            case "/v1/moderations":
                return json_reply({"id": "x", "results": [{"flagged": False}]})
            case _:
                return None

    def _runtime(self, path: str, *, streams: bool) -> Reply | None:
        match path:
            case "/api/embeddings":
                return json_reply({"embedding": [0.5, 0.25]})
            case "/api/show":
                return json_reply({"modelfile": "", "details": {}, "model_info": {}, "capabilities": []})
            case "/api/copy" | "/api/delete":
                return Reply(content_type="")
            case "/api/pull" | "/api/push" | "/api/create":
                if not streams:
                    return json_reply({"status": "success"})
                steps = [ndjson({"status": "working"}), ndjson({"status": "success"})]
                return Reply(steps=steps, content_type="application/x-ndjson")
            case _:
                return None

    def _embeddings(self, request: Recorded) -> Reply:
        given = request.json.get("input")
        texts = given if isinstance(given, list) else [given]
        if request.path == "/api/embed":
            return json_reply({"model": "m", "embeddings": [[0.5, 0.25] for _ in texts]})
        data = [{"object": "embedding", "index": i, "embedding": [0.5, 0.25]} for i in range(len(texts))]
        return json_reply({"object": "list", "data": data, "model": "m"})
