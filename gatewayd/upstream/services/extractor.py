"""External extractor: sends documents over HTTP and receives their text."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.ingest.chunker import ChunkRules, split_text
from gatewayd.ingest.fair_gate import FairGate
from gatewayd.ingest.interfaces import OUT_OF_TIME
from gatewayd.ingest.records import ExtractionResult, TextPart
from gatewayd.ingest.size_classes import QueueKey
from gatewayd.text import replace_presentation_forms
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.services.client import ServiceOptions, make_service_client, translate_refusals

BETWEEN: Final = "\n\n"
"""Separator between the pages of a text."""

UNKNOWN_TYPE: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class ExtractorOptions:
    """Service and limits of the extraction; `size_limit` is in bytes, `text_limit` in characters."""

    service: ServiceOptions
    rules: ChunkRules
    size_limit: int
    text_limit: int


class ExternalExtractor:
    """An `ingest.interfaces.Extractor` over `PUT {base_url}/process`.

    The body is the document; the answer is `{"page_content", "metadata"}` or a list of these, one a page. The
    page number is `page` in the metadata, counted from 0.
    """

    def __init__(self, options: ExtractorOptions, client: UpstreamClient | None = None) -> None:
        self._options = options
        self._requests = FairGate(options.service.connections)
        self._exchange = make_service_client("external extractor", options.service, client)

    async def extract(
        self, path: Path, name: str, content_type: str | None, key: QueueKey
    ) -> ExtractionResult:
        """Return the text of the document at `path`.

        Waits while all connections are in use. Raises GatewayError: invalid_request if the extractor refuses
        the document, or finds no text or too much of it; upstream_unreachable, upstream_failed, rate_limited
        or timeout.
        """
        async with self._requests.held(key):
            content = await asyncio.to_thread(_read, path, name, self._options.size_limit)
            headers = {
                "Content-Type": content_type or UNKNOWN_TYPE,
                "X-Filename": quote(name, safe="", errors="replace"),
            }
            with translate_refusals(ErrorKind.INVALID_REQUEST), _marked_timeout():
                answer = await self._exchange.put("/process", content, headers)
                pages = list(self._pages(answer))
        return await asyncio.to_thread(_extraction, pages, name, self._options)

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    def _pages(self, answer: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the texts with their metadata."""
        for item in answer if isinstance(answer, list) else [answer]:
            page = item if isinstance(item, dict) else {}
            text, metadata = page.get("page_content"), page.get("metadata")
            if not isinstance(text, str):
                raise self._exchange.failures.broken("its answer has no 'page_content'")
            yield text.replace("\0", " "), metadata if isinstance(metadata, dict) else {}


@contextmanager
def _marked_timeout() -> Iterator[None]:
    """Mark a timeout as one of the extraction."""
    try:
        yield
    except GatewayError as error:
        if error.kind is ErrorKind.TIMEOUT:
            error.code = OUT_OF_TIME
        raise


def _read(path: Path, name: str, limit: int) -> bytes:
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise invalid(f"cannot extract {shorten(name)!r}: it is over {limit} bytes")
    return content


def _extraction(
    answered: list[tuple[str, Mapping[str, Any]]], name: str, options: ExtractorOptions
) -> ExtractionResult:
    pages = [(replace_presentation_forms(page), metadata) for page, metadata in answered]
    text = BETWEEN.join(page for page, _ in pages)
    if not text.strip():
        raise invalid(f"cannot extract {shorten(name)!r}: the external extractor found no text in it")
    if len(text) > options.text_limit:
        raise invalid(f"cannot extract {shorten(name)!r}: its text is over {options.text_limit} characters")
    parts = list(_parts(pages))
    numbers = [part.page for part in parts if part.page is not None]
    return ExtractionResult(
        text,
        split_text(text, parts, options.rules),
        pages=max(numbers, default=None),
        title=_title(pages[0][1]),
        blank_pages=sum(
            part.page is not None and not page.strip() for part, (page, _) in zip(parts, pages, strict=True)
        ),
    )


def _parts(pages: list[tuple[str, Mapping[str, Any]]]) -> Iterator[TextPart]:
    start = 0
    for text, metadata in pages:
        found = metadata.get("page")
        page = found + 1 if isinstance(found, int) and found >= 0 else None
        yield TextPart(start, start + len(text), page=page, is_markdown=True)
        start += len(text) + len(BETWEEN)


def _title(metadata: Mapping[str, Any]) -> str | None:
    title = metadata.get("title")
    return replace_presentation_forms(title).strip() or None if isinstance(title, str) else None
