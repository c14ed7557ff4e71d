"""Replies of batches and their files, in the forms of OpenAI and Anthropic."""

from datetime import UTC, datetime
from typing import Any

from gatewayd.batches.records import Batch, BatchFile, BatchStatus


def render_file(file: BatchFile) -> dict[str, Any]:
    """Return a file of the OpenAI dialect."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": file.created_at,
        "expires_at": file.expires_at,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }


def render_batch(batch: Batch) -> dict[str, Any]:
    """Return a batch of the OpenAI dialect."""

    def ended(status: BatchStatus) -> int | None:
        return batch.ended_at if batch.status is status else None

    faults = {"object": "list", "data": list(batch.errors)} if batch.errors else None
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": faults,
        "input_file_id": batch.input_file_id,
        "completion_window": "24h",
        "status": batch.status.value,
        "output_file_id": batch.output_file_id,
        "error_file_id": batch.error_file_id,
        "created_at": batch.created_at,
        "in_progress_at": batch.started_at,
        "expires_at": batch.expires_at,
        "finalizing_at": None if batch.status is BatchStatus.FAILED else batch.ended_at,
        "completed_at": ended(BatchStatus.COMPLETED),
        "failed_at": ended(BatchStatus.FAILED),
        "expired_at": ended(BatchStatus.EXPIRED),
        "cancelling_at": batch.cancelled_at,
        "cancelled_at": ended(BatchStatus.CANCELLED),
        "request_counts": {"total": batch.total, "completed": batch.completed, "failed": batch.failed},
        "metadata": dict(batch.metadata) or None,
    }


def render_message_batch(batch: Batch, base: str) -> dict[str, Any]:
    """Return a batch of the messages dialect; `base` is the address of the route that lists batches."""
    is_over = not batch.is_unfinished
    left = batch.total - batch.completed - batch.failed
    is_cancelling = batch.status is BatchStatus.CANCELLING
    state = "canceling" if is_cancelling else "in_progress"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if is_over else state,
        "request_counts": {
            "processing": 0 if is_over else left,
            "succeeded": batch.completed,
            "errored": batch.failed + (left if batch.status is BatchStatus.FAILED else 0),
            "canceled": left if batch.status is BatchStatus.CANCELLED else 0,
            "expired": left if batch.status is BatchStatus.EXPIRED else 0,
        },
        "created_at": _date(batch.created_at),
        "expires_at": _date(batch.expires_at),
        "ended_at": _date(batch.ended_at),
        "cancel_initiated_at": _date(batch.cancelled_at),
        "archived_at": None,
        "results_url": f"{base}/{batch.id}/results" if is_over and batch.output_file_id else None,
    }


def _date(seconds: int | None) -> str | None:
    return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
