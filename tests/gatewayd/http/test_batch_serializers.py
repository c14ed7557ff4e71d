"""Tests for gatewayd.http.public.batches.serializers and the pages of lists."""

from dataclasses import replace

from gatewayd.batches.records import Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.http.public.batches.files import page_of
from gatewayd.http.public.batches.serializers import render_batch, render_file, render_message_batch

ENDPOINT = "/v1/embeddings"
BATCH = Batch("b1", "u1", BatchDialect.OPENAI, ENDPOINT, "f1", BatchStatus.IN_PROGRESS, 100, 200, total=3)


def test_a_batch_in_the_openai_form() -> None:
    running = render_batch(replace(BATCH, completed=1, failed=1))
    assert (running["status"], running["request_counts"]) == (
        "in_progress",
        {"total": 3, "completed": 1, "failed": 1},
    )
    assert (running["completed_at"], running["errors"], running["metadata"]) == (None, None, None)
    over = render_batch(replace(BATCH, status=BatchStatus.EXPIRED, ended_at=150, metadata={"a": "b"}))
    assert (over["expired_at"], over["completed_at"], over["metadata"]) == (150, None, {"a": "b"})
    failed = render_batch(replace(BATCH, status=BatchStatus.FAILED, ended_at=150, errors=({"line": 1},)))
    assert failed["errors"] == {"object": "list", "data": [{"line": 1}]}
    assert (failed["failed_at"], failed["finalizing_at"]) == (150, None)


def test_a_batch_in_the_anthropic_form() -> None:
    base = "https://ai.example.org/v1/messages/batches"
    running = render_message_batch(replace(BATCH, completed=1, failed=1), base)
    assert (running["processing_status"], running["results_url"]) == ("in_progress", None)
    assert running["request_counts"]["processing"] == 1
    done = replace(BATCH, status=BatchStatus.COMPLETED, completed=3, ended_at=150, output_file_id="f2")
    over = render_message_batch(done, base)
    assert over["processing_status"] == "ended"
    assert over["results_url"] == f"{base}/b1/results"


def test_files_and_pages() -> None:
    file = render_file(BatchFile("f1", "u1", "requests.jsonl", "batch", 12, 100, 200))
    assert (file["filename"], file["bytes"], file["purpose"], file["expires_at"]) == (
        "requests.jsonl",
        12,
        "batch",
        200,
    )
    page = page_of([{"id": "a"}, {"id": "b"}], has_more=True)
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("a", "b", True)
    assert page_of([], has_more=False)["first_id"] is None
