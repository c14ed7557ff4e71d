"""Lines of batches: checks of input files, and the lines of results."""

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from gatewayd.batches.records import Batch, BatchDialect, BatchStatus, LineAnswer
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.json_decoder import LARGE_LIMITS, decode, decode_light, is_light

MAX_LINES: Final = 50_000
"""Maximum number of requests of a batch, as at OpenAI."""

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
MAX_CUSTOM_ID_CHARACTERS: Final = 512
MAX_REPORTED_ERRORS: Final = 100

RESPONSES_ENDPOINT: Final = "/v1/responses"

ENDPOINTS: Final = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/images/generations",
    "/v1/moderations",
    RESPONSES_ENDPOINT,
)
"""Endpoints of batches in the OpenAI dialect."""

MESSAGES_ENDPOINT: Final = "/v1/messages"

_MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A request of a batch."""

    custom_id: str
    body: Body


def parse_line(raw: bytes, batch: Batch) -> BatchLine:
    """Return the request of a line of the input file; raise invalid_request with the name of a bad field.

    Runs in a thread, in which a large line has an event loop of its own.
    """
    if len(raw) > MAX_LINE_BYTES:
        raise invalid(f"cannot read the line: it is over {MAX_LINE_BYTES} bytes", code="line_too_large")
    try:
        value = _decoded(raw)
    except GatewayError as error:
        raise invalid(f"cannot read the line: {error.message}", code="invalid_json_line") from error
    if not isinstance(value, dict):
        raise invalid("cannot read the line: expected a JSON object", code="invalid_json_line")
    if batch.dialect is BatchDialect.ANTHROPIC:
        return parse_message_request(value)
    return _parse_openai(value, batch.endpoint)


def _decoded(raw: bytes) -> Any:
    if is_light(raw):
        return decode_light(raw, LARGE_LIMITS)
    # The decoder at once holds the interpreter for seconds, from a thread as well, and has no limits.
    return asyncio.run(decode(raw, LARGE_LIMITS))


def parse_message_request(value: Mapping[str, Any]) -> BatchLine:
    """Return a request `{"custom_id", "params"}` of a batch of messages; raise invalid_request."""
    custom_id, params = value.get("custom_id"), value.get("params")
    if not isinstance(custom_id, str) or not _MESSAGE_ID.fullmatch(custom_id):
        raise invalid(
            "cannot accept custom_id: expected 1 to 64 letters, digits, _ and -", param="requests.custom_id"
        )
    if not isinstance(params, dict):
        raise invalid("cannot accept params: expected an object", param="requests.params")
    _check_whole(params, "requests.params.stream")
    return BatchLine(custom_id, params)


def _parse_openai(value: Mapping[str, Any], endpoint: str) -> BatchLine:
    custom_id = value.get("custom_id")
    if not isinstance(custom_id, str) or not 0 < len(custom_id) <= MAX_CUSTOM_ID_CHARACTERS:
        raise invalid(
            f"cannot accept custom_id: expected a text of 1 to {MAX_CUSTOM_ID_CHARACTERS} characters",
            param="custom_id",
            code="missing_required_parameter",
        )
    if value.get("method") != "POST":
        raise invalid("cannot accept method: expected POST", param="method", code="invalid_method")
    if value.get("url") != endpoint:
        raise invalid(
            f"cannot accept url: expected {endpoint}, the endpoint of the batch",
            param="url",
            code="mismatched_url",
        )
    body = value.get("body")
    if not isinstance(body, dict):
        raise invalid("cannot accept body: expected an object", param="body", code="invalid_body")
    _check_whole(body, "body.stream")
    return BatchLine(custom_id, body)


def _check_whole(body: Mapping[str, Any], param: str) -> None:
    if body.get("stream"):
        raise invalid("cannot accept stream: a batch has whole answers", param=param, code="invalid_stream")


@dataclass(frozen=True, slots=True)
class InputCheck:
    """Result of the check of an input file: its number of lines, and the first faults."""

    total: int
    errors: list[dict[str, Any]]


def check_input(path: Path, batch: Batch) -> InputCheck:
    """Read an input file and check every line; runs in a thread. Raises OSError."""
    errors: list[dict[str, Any]] = []
    seen: set[bytes] = set()
    total = 0
    for raw in read_lines(path):
        total += 1
        if total > MAX_LINES:
            errors.append(_fault(None, "too_many_tasks", f"the file has more than {MAX_LINES} lines", None))
            break
        try:
            line = parse_line(raw, batch)
            digest = hashlib.blake2b(line.custom_id.encode("utf-8", "replace"), digest_size=16).digest()
            if digest in seen:
                reason = f"cannot accept custom_id: {shorten(line.custom_id)!r} stands in an earlier line"
                raise invalid(reason, param="custom_id", code="duplicate_custom_id")
        except GatewayError as error:
            errors.append(_fault(total, error.told_code, error.message, error.param))
            if len(errors) >= MAX_REPORTED_ERRORS:
                break
        else:
            seen.add(digest)
    if not total:
        errors.append(_fault(None, "empty_file", "the file has no lines", None))
    return InputCheck(total, errors)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that are not blank; one over MAX_LINE_BYTES is cut a byte behind it."""
    with path.open("rb") as file:
        while raw := file.readline(MAX_LINE_BYTES + 1):
            is_cut = len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n")
            while is_cut and (rest := file.readline(MAX_LINE_BYTES)):
                is_cut = not rest.endswith(b"\n")
            if raw.strip():
                yield raw


def _fault(line: int | None, code: str, message: str, param: str | None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": param, "line": line}


def render_answer(batch: Batch, line: BatchLine, answer: LineAnswer) -> bytes:
    """Return the line of a result."""
    if batch.dialect is BatchDialect.ANTHROPIC:
        result = (
            {"type": "succeeded", "message": answer.body}
            if answer.is_success
            else {"type": "errored", "error": answer.body}
        )
        return orjson.dumps({"custom_id": line.custom_id, "result": result})
    response = {"status_code": answer.status, "request_id": answer.request_id, "body": answer.body}
    return orjson.dumps(
        {
            "id": f"batch_req_{answer.request_id}",
            "custom_id": line.custom_id,
            "response": response,
            "error": None,
        }
    )


_UNFINISHED: Final = {
    BatchStatus.EXPIRED: ("expired", "batch_expired", "expired"),
    BatchStatus.CANCELLED: ("canceled", "batch_cancelled", "was cancelled"),
    BatchStatus.FAILED: ("errored", "batch_failed", "failed"),
}
"""Type of the result at Anthropic, code at OpenAI, and words for requests that did not run."""


def render_unfinished(batch: Batch, custom_id: str, status: BatchStatus, number: int) -> bytes:
    """Return the line for a request that did not run: the batch expired, was cancelled, or failed."""
    kind, code, words = _UNFINISHED[status]
    message = f"the batch {words} before this request ran"
    if batch.dialect is BatchDialect.ANTHROPIC:
        result: dict[str, Any] = {"type": kind}
        if kind == "errored":
            result["error"] = {"type": "error", "error": {"type": "api_error", "message": message}}
        return orjson.dumps({"custom_id": custom_id, "result": result})
    error = {"code": code, "message": message}
    return orjson.dumps(
        {"id": f"batch_req_{batch.id}_{number}", "custom_id": custom_id, "response": None, "error": error}
    )
