"""Tests for gatewayd.pipeline.media.service."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import CallContext, RequestContent
from gatewayd.catalog.records import EVERYBODY, Grant, Model, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.media.endpoints import IMAGE_GENERATION, MODERATION, TRANSCRIPTION
from gatewayd.pipeline.media.service import MediaService
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model

OPEN = (Grant("user", EVERYBODY, "read"),)
SPEAKER = replace(make_actor("u2", Role.USER), permissions={"chat": {"stt": True}})


class Answer:
    status = 200
    content_type = "application/json"

    def __aiter__(self) -> "Answer":
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        return


class Media(FakeSource):
    """A source with the endpoints; it fails with `refusal` after it took `taken` pieces."""

    taken = 0
    refusal: Exception | None = None

    async def exchange(self, path: str, body: Any, model: Model, context: CallContext) -> Answer:
        self.asked.append(body if isinstance(body, dict) else {"path": path})
        if not isinstance(body, dict):
            pieces = body.pieces()
            for _ in range(self.taken):
                await anext(pieces)
            await pieces.aclose()
        if self.refusal is not None:
            raise self.refusal
        return Answer()


class Once:
    """A content that can be sent once."""

    media_type = "text/plain"
    length = None

    def __init__(self, body: Any) -> None:
        self.is_spent = False
        self.body = body

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        self.is_spent = True
        yield b"a"


async def service_of(*sources: FakeSource, record: ModelRecord | None = None) -> MediaService:
    records = {"m": record or ModelRecord("m", "u1", "m", grants=OPEN)}
    catalog = Catalog(FakeRecords(records), TaskRegistry(), CatalogOptions())
    await catalog.load()
    catalog.use(list(sources))
    await catalog.list(make_actor())
    return MediaService(catalog, NoFilters())


def working(name: str) -> Media:
    return Media(name, [make_model("m", name)])


def refusing(name: str, taken: int) -> Media:
    """Return a source that takes so many pieces and then cannot be reached."""
    source = working(name)
    source.taken = taken
    source.refusal = GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, f"cannot reach {name}")
    return source


@pytest.mark.parametrize(("taken", "asked"), [(0, 2), (1, 1)])
async def test_a_spent_upload_is_sent_to_no_other_source(taken: int, asked: int) -> None:
    sources = [refusing("one", taken), refusing("two", taken)]
    service = await service_of(*sources)
    make: list[RequestContent] = []

    def content(body: Any) -> RequestContent:
        made = make[0] if make else Once(body)
        make.append(made)
        return made

    with pytest.raises(GatewayError, match="cannot reach"):
        await service.run(TRANSCRIPTION, {"model": "m"}, RequestCaller(SPEAKER), content)
    assert sum(len(source.asked) for source in sources) == asked


async def test_a_source_without_the_endpoint_is_passed_over() -> None:
    plain, media = FakeSource("one", [make_model("m", "one")]), working("two")
    service = await service_of(plain, media)
    await service.run(MODERATION, {"model": "m", "input": "a"}, RequestCaller(SPEAKER))
    assert media.asked == [{"model": "up-m", "input": "a"}]


async def test_permissions_and_grants_are_asked_for() -> None:
    service = await service_of(working("one"))
    with pytest.raises(GatewayError, match=r"features\.image_generation"):
        await service.run(IMAGE_GENERATION, {"model": "m", "prompt": "a"}, RequestCaller(SPEAKER))
    with pytest.raises(GatewayError, match=r"chat\.stt"):
        await service.check(TRANSCRIPTION, {}, RequestCaller(make_actor("u3", Role.USER)))
    with pytest.raises(GatewayError, match="Model not found"):
        await service.check(TRANSCRIPTION, {"model": "other"}, RequestCaller(SPEAKER))
    assert await service.check(TRANSCRIPTION, {"model": "m"}, RequestCaller(SPEAKER))
    assert not await service.check(TRANSCRIPTION, {}, RequestCaller(SPEAKER))


async def test_a_form_waits_for_all_fields_if_a_record_changes_them() -> None:
    record = ModelRecord("m", "u1", "m", params={"custom_params": {"language": "de"}}, grants=OPEN)
    source = working("one")
    service = await service_of(source, record=record)
    assert not await service.check(TRANSCRIPTION, {"model": "m"}, RequestCaller(SPEAKER))
    bodies: list[Any] = []

    def content(body: Any) -> RequestContent:
        bodies.append(body)
        return Once(body)

    await service.run(TRANSCRIPTION, {"model": "m", "language": "en"}, RequestCaller(SPEAKER), content)
    assert bodies == [{"model": "up-m", "language": "de"}]
