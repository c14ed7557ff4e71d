"""A provider that runs batches: OpenAI's files and batches, and Anthropic's batches of messages.

It refuses what the originals refuse. A batch ends at the question with the number `questions`; `change` may
change the lines of its results, and `failures` has statuses for the next requests by `METHOD first-part`.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.fakes.providers.strict.base import Body, StrictProvider, openai_error

Lines = list[Body]


class BatchProvider(StrictProvider):
    """The server; with `is_messages` it speaks the protocol of Anthropic."""

    def __init__(self, models: tuple[str, ...] = ("m", "n"), *, is_messages: bool = False) -> None:
        super().__init__(models=models, prefix="" if is_messages else "/v1")
        self.is_messages = is_messages
        self.questions = 2
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Body] = {}
        self.lines: dict[str, Lines] = {}
        self.asked: list[str] = []
        self.failures: dict[str, list[int]] = defaultdict(list)
        self.forgets: set[str] = set()
        """Requests that are done without an answer: the connection ends."""
        self.change: Callable[[Lines], Lines] = lambda lines: lines
        self.lengths: list[int | None] = []
        self.holds = asyncio.Event()
        self.holds.set()

    def count(self, what: str) -> int:
        """Return how many requests there were."""
        return self.asked.count(what)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        parts = request.path.removeprefix(self._prefix).strip("/").split("/")
        if self.is_messages and parts[:3] == ["v1", "messages", "batches"]:
            name, rest = "batches", parts[3:]
        elif parts[0] in {"files", "batches"} and not self.is_messages:
            name, rest = parts[0], parts[1:]
        elif self.is_messages and parts == ["v1", "models"]:
            data = [{"id": each["id"], "type": "model", "display_name": each["id"]} for each in self._models]
            return web.json_response({"data": data, "has_more": False})
        else:
            return await super().serve(request)
        what = " ".join([request.method, name, *rest[1:]])
        self.asked.append(what)
        if self.failures[what]:
            status = self.failures[what].pop(0)
            if status:
                return web.json_response(openai_error(f"status {status}"), status=status)
        await self.holds.wait()
        answer = await getattr(self, f"_{name}")(request, rest)
        if what in self.forgets:
            self.forgets.discard(what)
            assert request.transport is not None
            request.transport.close()
        return answer

    async def _files(self, request: web.Request, rest: list[str]) -> web.StreamResponse:
        if request.method == "POST":
            form = await request.post()
            upload = form["file"]
            assert form["purpose"] == "batch"
            assert isinstance(upload, web.FileField)
            assert upload.filename.endswith(".jsonl")
            self.lengths.append(request.content_length)
            file_id = f"file-up{len(self.files)}"
            self.files[file_id] = upload.file.read()
            return web.json_response({"id": file_id, "object": "file", "purpose": "batch"})
        if rest[0] not in self.files:
            return web.json_response(openai_error("No such File object"), status=404)
        if request.method == "DELETE":
            del self.files[rest[0]]
            return web.json_response({"id": rest[0], "deleted": True})
        return web.Response(body=self.files[rest[0]], content_type="application/octet-stream")

    async def _batches(self, request: web.Request, rest: list[str]) -> web.StreamResponse:
        if not rest:
            return self._listed() if request.method == "GET" else await self._created(request)
        batch = self.batches.get(rest[0])
        if batch is None:
            return web.json_response(openai_error("No batch found"), status=404)
        if request.method == "DELETE":
            del self.batches[rest[0]]
            return web.json_response({"id": rest[0]})
        if rest[1:] == ["cancel"]:
            self.end(batch, is_cancelled=True)
        elif rest[1:] == ["results"]:
            return web.Response(body=self.files[rest[0]], content_type="application/x-jsonl")
        else:
            batch["asked"] += 1
            if batch["asked"] >= self.questions:
                self.end(batch)
        return web.json_response(self._shown(batch))

    def _listed(self) -> web.StreamResponse:
        data = [self._shown(each) for each in reversed(self.batches.values())]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def _created(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.is_messages:
            assert "metadata" not in body
            lines, marked = body["requests"], {}
            self.lengths.append(request.content_length)
        else:
            assert set(body) == {"input_file_id", "endpoint", "completion_window", "metadata"}
            content = self.files[body["input_file_id"]]
            lines, marked = [json.loads(line) for line in content.splitlines()], body["metadata"]
            assert {line["url"] for line in lines} == {body["endpoint"]}
        assert len({line["custom_id"] for line in lines}) == len(lines)
        batch_id = f"up{len(self.batches)}"
        self.lines[batch_id] = lines
        self.batches[batch_id] = {"id": batch_id, "asked": 0, "status": "in_progress", "metadata": marked}
        return web.json_response(self._shown(self.batches[batch_id]))

    def _shown(self, batch: Body) -> Body:
        total, is_done = len(self.lines[batch["id"]]), batch["status"] != "in_progress"
        if self.is_messages:
            counts = dict.fromkeys(("succeeded", "errored", "canceled", "expired", "processing"), 0)
            counts["succeeded" if is_done else "processing"] = total
            return {
                "id": batch["id"],
                "type": "message_batch",
                "processing_status": "ended" if is_done else "in_progress",
                "created_at": "2100-01-01T00:00:00Z",
                "request_counts": counts,
            }
        counts = {"total": total, "completed": total if is_done else 1, "failed": 0}
        return {**batch, "object": "batch", "created_at": 4102444800, "request_counts": counts}

    def end(self, batch: Body, *, is_cancelled: bool = False) -> None:
        """Write the results: when cancelled only that of the first line."""
        if batch["status"] != "in_progress":
            return
        batch["status"] = "cancelled" if is_cancelled else "completed"
        lines = self.lines[batch["id"]]
        ran = lines[:1] if is_cancelled else lines
        made = [self._result(line) for line in ran]
        made += [self._unfinished(line) for line in lines[len(ran) :]]
        content = b"".join(json.dumps(line).encode() + b"\n" for line in self.change(made))
        if self.is_messages:
            self.files[batch["id"]] = content
        else:
            batch["output_file_id"] = f"out-{batch['id']}"
            self.files[batch["output_file_id"]] = content

    def _result(self, line: Body) -> Body:
        body: Any = line["params"] if self.is_messages else line["body"]
        if self.is_messages:
            message = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [{"type": "text", "text": "Hello."}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 5, "output_tokens": 3},
            }
            return {"custom_id": line["custom_id"], "result": {"type": "succeeded", "message": message}}
        if line["url"] == "/v1/embeddings":
            answer: Body = {
                "object": "list",
                "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                "usage": {"prompt_tokens": 5, "total_tokens": 5},
            }
        else:
            message = {"role": "assistant", "content": "Hello."}
            answer = {
                "id": "c1",
                "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
            }
        response = {"status_code": 200, "request_id": "r1", "body": {**answer, "model": body["model"]}}
        return {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}

    def _unfinished(self, line: Body) -> Body:
        if self.is_messages:
            return {"custom_id": line["custom_id"], "result": {"type": "canceled"}}
        error = {"code": "batch_cancelled", "message": "This request was cancelled."}
        return {"id": "x", "custom_id": line["custom_id"], "response": None, "error": error}
