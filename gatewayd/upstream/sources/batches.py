"""Batches of providers: OpenAI's files and batches, and Anthropic's batches of messages."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer, RequestContent
from gatewayd.catalog.provider_batches import (
    BatchUpload,
    FoundBatches,
    Framing,
    ProviderBatch,
    ProviderBatches,
    ProviderBatchState,
    ProviderResult,
)
from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.upstream.sources.provider_client import MAX_ANSWER_BYTES, ProviderClient, listed_objects
from gatewayd.upstream.streams.checks import UncheckedStream

MAX_PAGES: Final = 50
"""Maximum number of pages of a list of batches, of up to 100 each, that are searched for an earlier try."""

CLOCK_SECONDS: Final = 300
"""How far the clock of a provider may be behind."""

MARK: Final = "gateway_batch"
"""Name in the metadata of OpenAI's batches that holds the gateway's own id."""

WINDOW: Final = "24h"
READ_BYTES: Final = 1 << 18
MAX_FAULTS: Final = 100

_BOUNDARY: Final = "gatewayd-batch-f3b1c2"

_STATES: Final = {
    "completed": ProviderBatchState.ENDED,
    "expired": ProviderBatchState.ENDED,
    "cancelled": ProviderBatchState.ENDED,
    "failed": ProviderBatchState.FAILED,
}


class OpenAiBatches(ProviderBatches):
    """Batches of files of requests."""

    framing = Framing(b"", b"\n", b"\n")

    def __init__(self, exchange: ProviderClient) -> None:
        self._exchange = exchange

    def render(self, custom_id: str, endpoint: str, body: Body) -> bytes:
        """Return one request of an upload."""
        return orjson.dumps({"custom_id": custom_id, "method": "POST", "url": endpoint, "body": body})

    async def upload(self, upload: BatchUpload, context: CallContext) -> str:
        """Upload the file of the requests."""
        head = "".join(
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}'
            for name, more, value in (
                ("purpose", "", "batch\r\n"),
                ("file", f'; filename="{upload.name}.jsonl"\r\nContent-Type: application/jsonl', ""),
            )
        )
        content = FileContent(
            upload.path,
            upload.size,
            f"multipart/form-data; boundary={_BOUNDARY}",
            (head.encode(), f"\r\n--{_BOUNDARY}--\r\n".encode()),
        )
        sent = await self._exchange.exchange("/files", content, context)
        return self._id_of(await _read(sent, self._exchange))

    async def create(self, upload: BatchUpload, file_id: str, context: CallContext) -> str:
        """Begin a batch with the id of the gateway in its metadata; it is sent once."""
        body = {
            "input_file_id": file_id,
            "endpoint": upload.endpoint,
            "completion_window": WINDOW,
            "metadata": {MARK: upload.name},
        }
        content = BytesContent(orjson.dumps(body), "application/json")
        sent = await self._exchange.exchange("/batches", content, context)
        return self._id_of(await _read(sent, self._exchange))

    async def find(self, upload: BatchUpload, since: int) -> FoundBatches:
        """Return the batch whose metadata has the id of the gateway."""
        path = "/batches?limit=100"
        for _ in range(MAX_PAGES):
            page = await self._exchange.get(path)
            items = listed_objects(page, "data", self._exchange.failures)
            for item in items:
                if as_mapping(item.get("metadata")).get(MARK) == upload.name:
                    return FoundBatches(self._id_of(item))
            is_old = bool(items) and as_count(items[-1].get("created_at")) < since - CLOCK_SECONDS
            if not items or is_old or not as_mapping(page).get("has_more"):
                return FoundBatches()
            path = f"/batches?limit=100&after={quote(as_text(items[-1].get('id')), safe='')}"
        raise self._exchange.failures.broken(f"its list of batches has over {MAX_PAGES} pages")

    async def get(self, batch_id: str) -> ProviderBatch:
        """Return one batch."""
        answer = as_mapping(await self._exchange.get(f"/batches/{quote(batch_id, safe='')}"))
        counts = as_mapping(answer.get("request_counts"))
        files = (answer.get("output_file_id"), answer.get("error_file_id"))
        faults = as_sequence(as_mapping(answer.get("errors")).get("data"))[:MAX_FAULTS]
        return ProviderBatch(
            self._id_of(answer),
            _STATES.get(as_text(answer.get("status")), ProviderBatchState.WORKING),
            as_count(counts.get("total")),
            as_count(counts.get("completed")),
            as_count(counts.get("failed")),
            as_count(answer.get("created_at")),
            tuple(file for file in files if isinstance(file, str) and file),
            tuple(self._fault(as_mapping(fault)) for fault in faults),
        )

    async def cancel(self, batch_id: str) -> None:
        """Ask for the end of a batch."""
        await self._exchange.post(f"/batches/{quote(batch_id, safe='')}/cancel", {}, is_native=True)

    async def read(self, results: str) -> ForwardedAnswer:
        """Return the content of a file of results."""
        path = f"/files/{quote(results, safe='')}/content"
        return await self._exchange.forward("GET", path, None, UncheckedStream())

    def parse(self, value: Mapping[str, Any]) -> ProviderResult:
        """Return one line of an output or error file."""
        custom_id, error = as_text(value.get("custom_id")), as_mapping(value.get("error"))
        if error:
            code = as_text(error.get("code"))
            if code in {"batch_expired", "batch_cancelled"}:
                return ProviderResult(custom_id, is_expired=code == "batch_expired")
            return ProviderResult(custom_id, error=self._exchange.failures.from_event(error))
        response = as_mapping(value.get("response"))
        status, body = response.get("status_code"), response.get("body")
        if type(status) is not int:
            raise self._exchange.failures.broken("a line of its results has no response")
        if 200 <= status < 300 and isinstance(body, dict):
            return ProviderResult(custom_id, body)
        told = self._exchange.failures.from_answer(status, {}, orjson.dumps(body))
        return ProviderResult(custom_id, error=told)

    async def remove(self, batch: ProviderBatch, file_id: str) -> None:
        """Delete the files of requests and results."""
        for file in (file_id, *batch.results):
            with suppress(GatewayError):
                await self._exchange.delete(f"/files/{quote(file, safe='')}")

    def _id_of(self, answer: Mapping[str, Any]) -> str:
        return _id_in(answer, self._exchange)

    def _fault(self, fault: Mapping[str, Any]) -> dict[str, Any]:
        message = self._exchange.failures.clean(as_text(fault.get("message")))
        return {"code": as_text(fault.get("code"))[:64], "message": message, "line": fault.get("line")}


class AnthropicBatches(ProviderBatches):
    """Batches of messages, which have no names: an earlier one is found by its time, size and results."""

    framing = Framing(b'{"requests":[', b",", b"]}")

    def __init__(self, exchange: ProviderClient) -> None:
        self._exchange = exchange

    def render(self, custom_id: str, endpoint: str, body: Body) -> bytes:
        """Return one request of an upload."""
        return orjson.dumps({"custom_id": custom_id, "params": body})

    async def upload(self, upload: BatchUpload, context: CallContext) -> str:
        """Return "": the requests go with the batch."""
        return ""

    async def create(self, upload: BatchUpload, file_id: str, context: CallContext) -> str:
        """Begin a batch."""
        content = FileContent(upload.path, upload.size, "application/json")
        sent = await self._exchange.exchange("/v1/messages/batches", content, context)
        return _id_in(await _read(sent, self._exchange), self._exchange)

    async def find(self, upload: BatchUpload, since: int) -> FoundBatches:
        """Return the batches of that time with as many requests, the oldest first."""
        path = "/v1/messages/batches?limit=100"
        found: list[str] = []
        for _ in range(MAX_PAGES):
            page = await self._exchange.get(path)
            items = [_message_batch(each, self._exchange) for each in self._listed(page)]
            recent = [each for each in items if each.created_at >= since - CLOCK_SECONDS]
            found += [each.id for each in recent if each.total == upload.total]
            if not recent or len(recent) < len(items) or not as_mapping(page).get("has_more"):
                return FoundBatches(None, found[::-1])
            path = f"/v1/messages/batches?limit=100&after_id={quote(items[-1].id, safe='')}"
        raise self._exchange.failures.broken(f"its list of batches has over {MAX_PAGES} pages")

    async def get(self, batch_id: str) -> ProviderBatch:
        """Return one batch."""
        answer = await self._exchange.get(f"/v1/messages/batches/{quote(batch_id, safe='')}")
        return _message_batch(as_mapping(answer), self._exchange)

    async def cancel(self, batch_id: str) -> None:
        """Ask for the end of a batch."""
        path = f"/v1/messages/batches/{quote(batch_id, safe='')}/cancel"
        await self._exchange.post(path, {}, is_native=True)

    async def read(self, results: str) -> ForwardedAnswer:
        """Return the results of a batch."""
        path = f"/v1/messages/batches/{quote(results, safe='')}/results"
        return await self._exchange.forward("GET", path, None, UncheckedStream())

    def parse(self, value: Mapping[str, Any]) -> ProviderResult:
        """Return one line of the results."""
        custom_id, result = as_text(value.get("custom_id")), as_mapping(value.get("result"))
        message = result.get("message")
        match result.get("type"):
            case "succeeded" if isinstance(message, dict):
                return ProviderResult(custom_id, message)
            case "errored":
                error = as_mapping(result.get("error"))
                return ProviderResult(custom_id, error=self._exchange.failures.from_event(error))
            case "canceled":
                return ProviderResult(custom_id)
            case "expired":
                return ProviderResult(custom_id, is_expired=True)
            case _:
                raise self._exchange.failures.broken("a line of its results has no known type")

    async def remove(self, batch: ProviderBatch, file_id: str) -> None:
        """Delete the batch with its results."""
        with suppress(GatewayError):
            await self._exchange.delete(f"/v1/messages/batches/{quote(batch.id, safe='')}")

    def _listed(self, page: object) -> Sequence[dict[str, Any]]:
        return listed_objects(page, "data", self._exchange.failures)


class FileContent(RequestContent):
    """The content of a file, with bytes before and behind it."""

    is_spent = False

    def __init__(
        self, path: Path, size: int, media_type: str, around: tuple[bytes, bytes] = (b"", b"")
    ) -> None:
        self._path = path
        self._around = around
        self._media_type = media_type
        self._length = size + len(around[0]) + len(around[1])

    @property
    def media_type(self) -> str:
        """Media type with its parameters."""
        return self._media_type

    @property
    def length(self) -> int:
        """Number of bytes."""
        return self._length

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes."""
        if self._around[0]:
            yield self._around[0]
        start = 0
        # Each piece opens the file: a cancellation while a thread opens it would leave it open.
        while piece := await asyncio.to_thread(_read_at, self._path, start):
            start += len(piece)
            yield piece
        if self._around[1]:
            yield self._around[1]


class BytesContent(RequestContent):
    """Bytes that are sent once: a request whose connection breaks is not repeated."""

    is_spent = False

    def __init__(self, content: bytes, media_type: str) -> None:
        self._content = content
        self._media_type = media_type

    @property
    def media_type(self) -> str:
        """Media type."""
        return self._media_type

    @property
    def length(self) -> int:
        """Number of bytes."""
        return len(self._content)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes."""
        yield self._content


async def _read(answer: ForwardedAnswer, exchange: ProviderClient) -> Mapping[str, Any]:
    """Return the JSON object of an answer."""
    data = bytearray()
    async with aclosing(answer):
        async for piece in answer:
            data += piece
            if len(data) > MAX_ANSWER_BYTES:
                raise exchange.failures.broken(f"its answer is over {MAX_ANSWER_BYTES} bytes")
    try:
        return as_mapping(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise exchange.failures.broken("its answer is not JSON") from error


def _message_batch(answer: Mapping[str, Any], exchange: ProviderClient) -> ProviderBatch:
    counts = as_mapping(answer.get("request_counts"))
    done = [as_count(counts.get(name)) for name in ("succeeded", "errored", "canceled", "expired")]
    batch_id = _id_in(answer, exchange)
    has_ended = answer.get("processing_status") == "ended"
    return ProviderBatch(
        batch_id,
        ProviderBatchState.ENDED if has_ended else ProviderBatchState.WORKING,
        as_count(counts.get("processing")) + sum(done),
        done[0],
        sum(done[1:]),
        _seconds(answer.get("created_at")),
        (batch_id,) if has_ended else (),
    )


def _seconds(value: object) -> int:
    try:
        return int(datetime.fromisoformat(as_text(value)).timestamp())
    except (ValueError, OverflowError):
        return 0


def _id_in(answer: Mapping[str, Any], exchange: ProviderClient) -> str:
    found = answer.get("id")
    if not isinstance(found, str) or not 0 < len(found) <= 256:
        raise exchange.failures.broken("its answer has no 'id'")
    return found


def _read_at(path: Path, start: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(READ_BYTES)
