import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.chunker import ChunkRules
from gatewayd.ingest.interfaces import OUT_OF_TIME
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey, SizeClass
from gatewayd.upstream.services.client import ServiceOptions
from gatewayd.upstream.services.extractor import ExternalExtractor, ExtractorOptions
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply, json_reply


@pytest.fixture
async def extractor(fake: FakeUpstream) -> AsyncIterator[ExternalExtractor]:
    service = ServiceOptions(f"{fake.base_url}/docs", key="secret-key")
    extractor = ExternalExtractor(ExtractorOptions(service, ChunkRules(), 1000, 500))
    yield extractor
    await extractor.close()


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(b"%PDF\0\xff")
    return path


async def test_a_document_is_sent_and_its_text_cut(
    extractor: ExternalExtractor, fake: FakeUpstream, document: Path
) -> None:
    fake.script(json_reply({"page_content": "# Title\n\nSome\0words", "metadata": {"title": " T "}}))
    found = await extractor.extract(document, "räksmörgås/1.pdf", "application/pdf", OTHER_WORK)
    assert (found.text, found.title, found.pages) == ("# Title\n\nSome words", "T", None)
    assert [(chunk.page, chunk.heading) for chunk in found.chunks] == [(None, "Title")]
    (request,) = fake.requests
    assert (request.method, request.path, request.body) == ("PUT", "/docs/process", b"%PDF\0\xff")
    assert request.headers["Content-Type"] == "application/pdf"
    assert request.headers["X-Filename"] == "r%C3%A4ksm%C3%B6rg%C3%A5s%2F1.pdf"
    assert request.headers["Authorization"] == "Bearer secret-key"


async def test_pages_keep_their_numbers(
    extractor: ExternalExtractor, fake: FakeUpstream, document: Path
) -> None:
    pages = [{"page_content": f"Page of {name}", "metadata": {"page": at}} for at, name in enumerate("ab")]
    fake.script(json_reply([*pages, {"page_content": "Notes", "metadata": None}]))
    found = await extractor.extract(document, "a.pdf", None, OTHER_WORK)
    assert found.text == "Page of a\n\nPage of b\n\nNotes"
    texts = [(chunk.page, found.text[chunk.start : chunk.end]) for chunk in found.chunks]
    assert texts == [(1, "Page of a"), (2, "Page of b"), (None, "Notes")]
    assert (found.pages, found.blank_pages) == (2, 0)
    fake.script(
        json_reply([pages[0], {"page_content": " \n", "metadata": {"page": 1}}, {"page_content": ""}])
    )
    found = await extractor.extract(document, "a.pdf", None, OTHER_WORK)
    assert (found.pages, found.blank_pages) == (2, 1)
    assert fake.requests[0].headers["Content-Type"] == "application/octet-stream"


async def test_presentation_forms_are_plain_letters_and_stretches_fit(
    extractor: ExternalExtractor, fake: FakeUpstream, document: Path
) -> None:
    pages = [
        {"page_content": "The o\ufb03ce", "metadata": {"page": 0, "title": "\ufb01nance"}},
        {"page_content": "\ufef3\ufeae\ufef3\ufeaa", "metadata": {"page": 1}},
    ]
    fake.script(json_reply(pages))
    found = await extractor.extract(document, "a.pdf", None, OTHER_WORK)
    texts = [found.text[chunk.start : chunk.end] for chunk in found.chunks]
    assert (found.title, texts) == ("finance", ["The office", "\u064a\u0631\u064a\u062f"])


@pytest.mark.parametrize(
    ("reply", "kind", "sentence"),
    [
        (json_reply({"page_content": " \n\0"}), ErrorKind.INVALID_REQUEST, "found no text"),
        (json_reply([]), ErrorKind.INVALID_REQUEST, "found no text"),
        (json_reply({"page_content": "x" * 501}), ErrorKind.INVALID_REQUEST, "over 500 characters"),
        (json_reply({"detail": "it is encrypted"}, 422), ErrorKind.INVALID_REQUEST, "it is encrypted"),
        (json_reply({"page_content": 5}), ErrorKind.UPSTREAM_FAILED, "no 'page_content'"),
        (json_reply(["text"]), ErrorKind.UPSTREAM_FAILED, "no 'page_content'"),
        (json_reply({"detail": "who are you"}, 401), ErrorKind.UPSTREAM_FAILED, "who are you"),
        (json_reply({"detail": "no such path"}, 404), ErrorKind.UPSTREAM_FAILED, "no such path"),
        (json_reply({}, 503), ErrorKind.UPSTREAM_UNREACHABLE, "503"),
        (Reply(before=CUT), ErrorKind.UPSTREAM_FAILED, "external extractor"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_document_without_text_and_a_failing_service_are_told_apart(
    extractor: ExternalExtractor,
    fake: FakeUpstream,
    document: Path,
    reply: Reply,
    kind: ErrorKind,
    sentence: str,
) -> None:
    fake.script(reply, reply)
    with pytest.raises(GatewayError, match=sentence) as failure:
        await extractor.extract(document, "a.pdf", None, OTHER_WORK)
    assert failure.value.kind is kind


async def test_a_document_over_the_limit_is_not_sent(
    extractor: ExternalExtractor, fake: FakeUpstream, document: Path
) -> None:
    document.write_bytes(b"x" * 1001)
    with pytest.raises(GatewayError, match=r"'a\.pdf': it is over 1000 bytes") as failure:
        await extractor.extract(document, "a.pdf", None, OTHER_WORK)
    assert failure.value.kind is ErrorKind.INVALID_REQUEST
    assert not fake.requests


async def test_a_document_that_takes_too_long_is_told_from_other_failures(
    fake: FakeUpstream, document: Path
) -> None:
    service = ServiceOptions(f"{fake.base_url}/docs", timeout=0.1)
    extractor = ExternalExtractor(ExtractorOptions(service, ChunkRules(), 1000, 500))
    fake.script(Reply(before=SILENCE))
    with pytest.raises(GatewayError) as failure:
        await extractor.extract(document, "a.pdf", None, OTHER_WORK)
    assert (failure.value.kind, failure.value.code) == (ErrorKind.TIMEOUT, OUT_OF_TIME)
    await extractor.close()


async def test_documents_wait_in_turns_for_a_connection(fake: FakeUpstream, document: Path) -> None:
    service = ServiceOptions(f"{fake.base_url}/docs", connections=1)
    extractor = ExternalExtractor(ExtractorOptions(service, ChunkRules(), 1000, 500))
    fake.script(*(json_reply({"page_content": "text"}) for _ in range(4)))
    large, small = (QueueKey("u", size) for size in (SizeClass.LARGE, SizeClass.SMALL))
    names = {"l1": large, "l2": large, "l3": large, "s1": small}
    await asyncio.gather(*(extractor.extract(document, name, None, key) for name, key in names.items()))
    assert [request.headers["X-Filename"] for request in fake.requests] == ["l1", "s1", "l2", "l3"]
    await extractor.close()
