"""Tests for gatewayd.batches.lines."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.batches import lines
from gatewayd.batches.lines import (
    BatchLine,
    check_input,
    parse_line,
    parse_message_request,
    read_lines,
    render_answer,
    render_unfinished,
)
from gatewayd.batches.records import Batch, BatchDialect, BatchStatus, LineAnswer
from gatewayd.errors import GatewayError

BATCH = Batch("batch_1", "u1", BatchDialect.OPENAI, "/v1/embeddings", "file-1", BatchStatus.VALIDATING, 1, 9)
MESSAGES = replace(BATCH, dialect=BatchDialect.ANTHROPIC, endpoint="/v1/messages")
GOOD: dict[str, Any] = {"custom_id": "c", "method": "POST", "url": "/v1/embeddings", "body": {"input": "a"}}


def test_a_file_of_as_many_lines_as_may_be_is_checked_in_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    raw = [json.dumps({**GOOD, "custom_id": str(number)}).encode() for number in range(lines.MAX_LINES)]
    path.write_bytes(b"\n".join(raw))
    began = time.process_time()
    check = check_input(path, BATCH)
    assert (check.total, check.errors) == (50_000, [])
    assert time.process_time() - began < 5
    with path.open("ab") as file:
        file.write(b"\n" + raw[0])
    assert [error["code"] for error in check_input(path, BATCH).errors] == ["too_many_tasks"]


def test_only_the_first_faults_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"{\n" * 1000)
    found = check_input(path, BATCH).errors
    assert len(found) == lines.MAX_REPORTED_ERRORS
    assert [error["line"] for error in found[:2]] == [1, 2]


def test_a_long_line_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 200)
    path = tmp_path / "a"
    path.write_bytes(b'{"a": "' + b"a" * 1000 + b'"}\n\n' + json.dumps(GOOD).encode())
    found = list(read_lines(path))
    assert len(found) == 2
    with pytest.raises(GatewayError) as refused:
        parse_line(found[0], BATCH)
    assert refused.value.code == "line_too_large"
    assert parse_line(found[1], BATCH).custom_id == "c"


@pytest.mark.parametrize(
    "raw", [b"[" * 100_000, b'{"a":' * 1000, b"\xff", b'{"custom_id": "\\ud800"}', b"NaN"]
)
def test_a_hostile_line_is_refused(raw: bytes) -> None:
    with pytest.raises(GatewayError):
        parse_line(raw, BATCH)


@pytest.mark.parametrize("custom_id", ["", "a" * 513, None, 5])
def test_ids_have_a_length(custom_id: Any) -> None:
    with pytest.raises(GatewayError) as refused:
        parse_line(json.dumps({**GOOD, "custom_id": custom_id}).encode(), BATCH)
    assert refused.value.param == "custom_id"
    with pytest.raises(GatewayError):
        parse_message_request({"custom_id": custom_id, "params": {}})


def test_results_have_the_form_of_their_protocol() -> None:
    line = BatchLine("c", {})
    good, bad = LineAnswer(200, {"a": 1}, "r"), LineAnswer(404, {"error": {"code": "x"}}, "r")
    assert json.loads(render_answer(BATCH, line, bad)) == {
        "id": "batch_req_r",
        "custom_id": "c",
        "response": {"status_code": 404, "request_id": "r", "body": {"error": {"code": "x"}}},
        "error": None,
    }
    told = [json.loads(render_answer(MESSAGES, line, answer))["result"] for answer in (good, bad)]
    assert told == [
        {"type": "succeeded", "message": {"a": 1}},
        {"type": "errored", "error": {"error": {"code": "x"}}},
    ]
    late = json.loads(render_unfinished(BATCH, "c", BatchStatus.EXPIRED, 7))
    assert (late["response"], late["error"]["code"]) == (None, "batch_expired")
    for status, word in ((BatchStatus.EXPIRED, "expired"), (BatchStatus.CANCELLED, "canceled")):
        assert json.loads(render_unfinished(MESSAGES, "c", status, 7))["result"] == {"type": word}


@pytest.mark.parametrize(
    ("member", "code"), [(b"[],", "invalid_json_line"), (b"1,", "invalid_json_line"), (b'"{[,]}",', None)]
)
def test_a_large_line_has_the_limits_of_a_body(tmp_path: Path, member: bytes, code: str | None) -> None:
    """Millions of lists in one line stopped the gateway for seconds."""
    head = b'{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"input":['
    path = tmp_path / "input"
    path.write_bytes(head + member * (600_000 if code else 100_000) + b'""]}}')
    found = [fault["code"] for fault in check_input(path, BATCH).errors]
    assert found == ([] if code is None else [code])
