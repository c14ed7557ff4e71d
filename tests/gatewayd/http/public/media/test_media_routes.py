"""Tests for gatewayd.http.public.media.routes: official client, gateway, scripted provider."""

import asyncio
import base64
import platform
from collections.abc import AsyncIterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import APIError, AsyncOpenAI, NotFoundError

from gatewayd.http.public.media.routes import MediaRoutes
from gatewayd.http.routes import BASES
from gatewayd.pipeline.media.service import MediaService
from gatewayd.pipeline.pipeline import NoFilters
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.catalog import three_providers
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Recorded, Reply, json_reply, sse

# The official client asks for it once, by a process that a unit test may not start.
platform.processor()

ADMIN = bearer("admin")
FILE_LIMIT = 300_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
IMAGES = {"created": 1, "data": [{"b64_json": base64.b64encode(b"picture").decode()}]}
JSON_PATHS = {
    "/images/generations": {"prompt": "a cat"},
    "/audio/speech": {"input": "hello", "voice": "alloy"},
    "/moderations": {"input": ["a", "b"]},
}
FORM_PATHS = ("/images/edits", "/audio/transcriptions", "/audio/translations")


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[tuple[FakeUpstream, Client]]:
    async with three_providers(
        lambda catalog: MediaRoutes(
            MediaService(catalog, NoFilters()), body_limit=1_000_000, file_limit=FILE_LIMIT, folder=tmp_path
        ).routes()
    ) as made:
        yield made


@pytest.fixture
async def fake(gateway: tuple[FakeUpstream, Client]) -> FakeUpstream:
    return gateway[0]


@pytest.fixture
async def client(gateway: tuple[FakeUpstream, Client]) -> Client:
    return gateway[1]


@pytest.fixture
async def openai(client: Client) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="admin", base_url=str(client.make_url("/v1")), max_retries=0) as made:
        yield made


def parts_of(request: Recorded) -> list[tuple[str, str | None, bytes]]:
    """Return name, filename and bytes of the parts of a form, in order."""
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    message = message_from_bytes(head + request.body, policy=policy.HTTP)
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get_filename(),
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()
    ]


def form(*parts: tuple[str, str | bytes]) -> aiohttp.FormData:
    made = aiohttp.FormData(default_to_multipart=True)
    for name, value in parts:
        made.add_field(name, value, filename="a.wav" if isinstance(value, bytes) else None)
    return made


@pytest.mark.parametrize("path", [base + path for base in (BASES[0], BASES[2]) for path in JSON_PATHS])
async def test_json_requests_go_on_for_those_who_may(client: Client, fake: FakeUpstream, path: str) -> None:
    raw = b' {"any" : "thing"}'
    fake.script(Reply(steps=[raw], content_type="application/json"))
    asked = next(body for name, body in JSON_PATHS.items() if path.endswith(name))
    body = {"model": "acme.m", "odd": [None, 1.5], **asked}
    assert (await client.post(path, json=body)).status == 401
    assert (await client.post(path, json=body, headers=bearer("pending"))).status == 403
    assert (await client.post(path, json=body, headers=bearer("user"))).status in (403, 404)
    reply = await client.post(path, json=body, headers=ADMIN)
    assert (reply.status, reply.content_type, await reply.read()) == (200, "application/json", raw)
    (request,) = fake.requests
    assert request.path == "/v1/" + path.split("/", 3 if path.startswith("/api/v1") else 2)[-1]
    assert request.json == {**body, "model": "m"}


async def test_the_official_client_makes_images(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply(IMAGES))
    made = await openai.images.generate(model="acme.m", prompt="a cat", size="1024x1024")
    assert made.data is not None
    assert base64.b64decode(made.data[0].b64_json or "") == b"picture"
    partial = {"type": "image_generation.partial_image", "b64_json": "YQ==", "partial_image_index": 0}
    final = {"type": "image_generation.completed", "b64_json": "Yg==", "usage": {"total_tokens": 1}}
    events = [b"event: %s\n%s" % (event["type"].encode(), sse(event)) for event in (partial, final)]
    fake.script(Reply(steps=events))
    stream = await openai.images.generate(model="acme.m", prompt="a cat", stream=True, partial_images=1)
    assert [(event.type, event.b64_json) async for event in stream] == [
        ("image_generation.partial_image", "YQ=="),
        ("image_generation.completed", "Yg=="),
    ]


async def test_a_stream_of_images_that_breaks_off_is_no_success(
    openai: AsyncOpenAI, fake: FakeUpstream
) -> None:
    partial = {"type": "image_generation.partial_image", "b64_json": "YQ==", "partial_image_index": 0}
    fake.script(Reply(steps=[b"event: image_generation.partial_image\n" + sse(partial)]))
    stream = await openai.images.generate(model="acme.m", prompt="a cat", stream=True)
    with pytest.raises(APIError, match="ended before it was complete"):
        [event async for event in stream]


async def test_the_official_client_edits_images(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply(IMAGES))
    await openai.images.edit(
        model="acme.m", prompt="a hat", image=[("a.png", PNG), ("b.png", b"two")], mask=("m.png", b"mask")
    )
    (request,) = fake.requests
    found = parts_of(request)
    assert ("model", None, b"m") in found
    assert ("prompt", None, b"a hat") in found
    assert [(name, file, data) for name, file, data in found if file] == [
        ("image[]", "a.png", PNG),
        ("image[]", "b.png", b"two"),
        ("mask", "m.png", b"mask"),
    ]


async def test_speech_arrives_while_it_is_made(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(Reply(steps=[b"ID3\x00first", SILENCE, b"second"], content_type="audio/mpeg"))
    async with openai.audio.speech.with_streaming_response.create(
        model="acme.m", voice="alloy", input="hello"
    ) as answer:
        assert answer.headers["content-type"] == "audio/mpeg"
        read = answer.iter_bytes()
        assert await anext(read) == b"ID3\x00first"
        fake.release.set()
        assert b"".join([piece async for piece in read]) == b"second"


async def test_speech_that_breaks_off_cuts_the_connection(client: Client, fake: FakeUpstream) -> None:
    fake.script(Reply(steps=[b"ID3", CUT], content_type="audio/mpeg"))
    body = {"model": "acme.m", "input": "a", "voice": "b"}
    with pytest.raises(aiohttp.ClientError):
        await (await client.post("/v1/audio/speech", json=body, headers=ADMIN)).read()


async def test_a_client_that_leaves_stops_the_speech(client: Client, fake: FakeUpstream) -> None:
    fake.script(Reply(steps=[b"ID3", SILENCE], content_type="audio/mpeg"))
    body = {"model": "acme.m", "input": "a", "voice": "b"}
    reply = await client.post("/v1/audio/speech", json=body, headers=ADMIN)
    await reply.content.read(3)
    reply.close()
    await asyncio.wait_for(fake.closed.wait(), 5)


async def test_the_official_client_transcribes(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply({"text": "hello"}))
    answer = await openai.audio.transcriptions.create(
        model="acme.m", file=("speech.wav", PNG), timestamp_granularities=["word", "segment"]
    )
    assert answer.text == "hello"
    found = parts_of(fake.requests[0])
    assert ("file", "speech.wav", PNG) in found
    assert [data for name, _, data in found if name == "timestamp_granularities[]"] == [b"word", b"segment"]
    fake.script(Reply(steps=[b"1\n00:00 --> 00:01\nhello\n"], content_type="text/plain"))
    text = await openai.audio.transcriptions.create(model="acme.m", file=PNG, response_format="srt")
    assert "hello" in str(text)
    fake.script(json_reply({"text": "hello"}))
    with pytest.warns(DeprecationWarning, match="deprecated"):
        translated = await openai.audio.translations.create(model="acme.m", file=PNG)
    assert translated.text == "hello"
    events = [
        {"type": "transcript.text.delta", "delta": "hel"},
        {"type": "transcript.text.done", "text": "hello"},
    ]
    fake.script(Reply(steps=[*map(sse, events), sse(b"[DONE]")]))
    stream = await openai.audio.transcriptions.create(model="acme.m", file=PNG, stream=True)
    assert [event.type async for event in stream] == ["transcript.text.delta", "transcript.text.done"]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_the_model_may_stand_anywhere_in_the_form(
    client: Client, fake: FakeUpstream, place: int, tmp_path: Path
) -> None:
    parts: list[tuple[str, str | bytes]] = [("file", PNG), ("language", "en")]
    parts.insert(place, ("model", "acme.m"))
    fake.script(json_reply({"text": "hello"}))
    reply = await client.post("/v1/audio/transcriptions", data=form(*parts), headers=ADMIN)
    assert (await reply.json()) == {"text": "hello"}
    (request,) = fake.requests
    assert {name: data for name, _, data in parts_of(request)} == {
        "model": b"m",
        "file": PNG,
        "language": b"en",
    }
    # A form whose model comes first goes on while it arrives; any other has a known length.
    assert ("Transfer-Encoding" in request.headers) == (place == 0)
    assert not list(tmp_path.iterdir())


async def test_the_model_is_not_named_twice(client: Client, fake: FakeUpstream) -> None:
    parts = [("model", "acme.m"), ("file", PNG), ("model", "acme.other")]
    reply = await client.post("/v1/audio/transcriptions", data=form(*parts), headers=ADMIN)
    assert (reply.status, (await reply.json())["error"]["param"]) == (400, "model")
    parts = [("model", "acme.m"), ("file", PNG), ("Model", "acme.other")]
    reply = await client.post("/v1/audio/transcriptions", data=form(*parts), headers=ADMIN)
    assert (reply.status, (await reply.json())["error"]["param"]) == (400, "model")
    assert fake.requests == []


@pytest.mark.parametrize("first", ["model", "language"])
async def test_files_over_the_limit_are_refused(client: Client, first: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        value = "acme.m" if first == "model" else "en"
        head = f'--x\r\nContent-Disposition: form-data; name="{first}"\r\n\r\n{value}\r\n--x\r\n'
        yield f'{head}Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n'.encode()
        while True:
            yield bytes(64 * 1024)
            await asyncio.sleep(0)

    headers = {**ADMIN, "Content-Type": "multipart/form-data; boundary=x"}
    try:
        reply = await client.post("/v1/audio/transcriptions", data=pieces(), headers=headers)
    except aiohttp.ClientError:
        return
    assert reply.status == 413
    reply.close()


async def test_a_client_that_leaves_in_its_upload_leaves_no_request(
    client: Client, fake: FakeUpstream
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nacme.m\r\n--x\r\n'
        yield b'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf'
        await asyncio.sleep(0.05)
        raise asyncio.CancelledError

    headers = {**ADMIN, "Content-Type": "multipart/form-data; boundary=x"}
    with pytest.raises((asyncio.CancelledError, aiohttp.ClientError)):
        await client.post("/v1/audio/transcriptions", data=pieces(), headers=headers)
    assert fake.requests == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"--x--\r\n", 422),
        (b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nacme.m\r\n--x--\r\n', 422),
        (b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf', 400),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n", 400),
        (b"no form at all", 400),
    ],
)
async def test_half_and_broken_forms_are_refused(client: Client, body: bytes, status: int) -> None:
    headers = {**ADMIN, "Content-Type": "multipart/form-data; boundary=x"}
    reply = await client.post("/v1/audio/transcriptions", data=body, headers=headers)
    assert reply.status == status, await reply.text()
    assert "message" in (await reply.json())["error"]


@pytest.mark.parametrize("path", FORM_PATHS)
async def test_forms_want_rights_before_they_are_read(client: Client, path: str) -> None:
    parts = form(("model", "acme.m"), ("image", PNG))
    assert (await client.post(f"/v1{path}", data=parts)).status == 401
    refused = await client.post(f"/v1{path}", data=form(("model", "acme.m")), headers=bearer("user"))
    assert (refused.status, (await refused.json())["error"]["code"]) == (403, "permission")
    reply = await client.post(f"/v1{path}", json={"model": "acme.m"}, headers=ADMIN)
    assert reply.status == 415


async def test_a_source_without_the_endpoint_is_named(openai: AsyncOpenAI, client: Client) -> None:
    for model, source in (("claude.m", "claude"), ("acme.m", "acme"), ("local.m", "local")):
        with pytest.raises(NotFoundError) as refused:
            await openai.images.generate(model=model, prompt="a")
        assert refused.value.code == "endpoint_not_supported"
        assert source in refused.value.message
        with pytest.raises(NotFoundError, match=source):
            await openai.audio.transcriptions.create(model=model, file=PNG)


async def test_moderations_have_a_default_model(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    with pytest.raises(NotFoundError, match="omni-moderation-latest"):
        await openai.moderations.create(input="text")
    result = {"flagged": False, "categories": {}, "category_scores": {}, "category_applied_input_types": {}}
    fake.script(json_reply({"id": "modr", "model": "m", "results": [result]}))
    answer = await openai.moderations.create(model="acme.m", input=[{"type": "text", "text": "a"}])
    assert not answer.results[0].flagged


@pytest.mark.parametrize("value", [None, 5, {}, [], ""])
async def test_a_field_of_a_wrong_type_is_named(client: Client, value: Any) -> None:
    for path, body in JSON_PATHS.items():
        name = next(iter(body))
        asked = {"model": "acme.m", **body, name: value}
        reply = await client.post(f"/v1{path}", json=asked, headers=ADMIN)
        assert (reply.status, (await reply.json())["error"]["param"]) == (400, name)


async def test_a_refusal_of_the_provider_ends_an_upload(client: Client, fake: FakeUpstream) -> None:
    fake.script(json_reply({"error": {"message": "bad audio", "param": "file"}}, 400))
    parts = form(("model", "acme.m"), ("file", PNG))
    reply = await client.post("/v1/audio/transcriptions", data=parts, headers=ADMIN)
    assert reply.status == 400
    assert "bad audio" in (await reply.json())["error"]["message"]
