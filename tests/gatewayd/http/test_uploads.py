"""Tests for gatewayd.http.uploads."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.body import json_reply
from gatewayd.http.connections.minimum_rate import MinimumRate, MinimumRates
from gatewayd.http.routes import FORM_BODY, Route, RouteAccess
from gatewayd.http.uploads import CHUNK_BYTES, MAX_FIELD_BYTES, MAX_LINES, MAX_PARTS, read_form, read_stream
from tests.fakes.http.multipart_forms import BOUNDARY, FORM, file_part, form, part, upload_head, wired
from tests.fakes.http.multipart_forms import field as form_field
from tests.fakes.http.public_app import Client, serving

LIMIT = 3_000_000


@dataclass
class Receiver:
    """Receives files, and remembers what came of each."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    failure: BaseException | None = None
    longest: int = 0

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/form", self.form, RouteAccess.PUBLIC, "-", invites=True, takes=FORM_BODY),
            Route("POST", "/raw", self.raw, RouteAccess.PUBLIC, "-", invites=True, takes=()),
            Route("POST", "/refused", self.refuse, RouteAccess.PUBLIC, "-", invites=True, takes=()),
        ]

    async def form(self, request: web.Request) -> web.StreamResponse:
        received = await read_form(request, LIMIT)
        before = dict(received.fields)
        content = await self.take(received.stream())
        told = {"name": received.name, "type": received.content_type, "content": content.decode("latin-1")}
        return json_reply({**told, "before": before, "fields": received.fields})

    async def raw(self, request: web.Request) -> web.StreamResponse:
        return json_reply({"content": (await self.take(read_stream(request, LIMIT))).decode("latin-1")})

    async def refuse(self, request: web.Request) -> web.StreamResponse:
        raise GatewayError(ErrorKind.FORBIDDEN, "cannot upload: no permission")

    async def take(self, stream: AsyncIterator[bytes]) -> bytes:
        taken = bytearray()
        try:
            async for piece in stream:
                self.begun.set()
                self.longest = max(self.longest, len(piece))
                taken += piece
                if len(taken) > LIMIT:
                    raise GatewayError(ErrorKind.TOO_LARGE, "cannot keep the file: it is over the limit")
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self.ended.set()
        return bytes(taken)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
async def client(receiver: Receiver) -> AsyncIterator[Client]:
    async with serving(receiver.routes()) as made:
        yield made


async def post(client: Client, body: Any, content_type: str | None = FORM, path: str = "/form") -> Any:
    headers = {} if content_type is None else {"Content-Type": content_type}
    skipped = ["Content-Type"] if content_type is None else []
    data = BytesIO(body) if isinstance(body, bytes) else body
    async with client.post(path, data=data, headers=headers, skip_auto_headers=skipped) as reply:
        return reply.status, await reply.json()


async def test_a_file_between_fields(client: Client) -> None:
    body = form(form_field("metadata", '{"a": "ä"}'), file_part(b"hello"), form_field("late", "x"))
    assert await post(client, body) == (
        200,
        {
            "name": "a.txt",
            "type": "text/plain",
            "content": "hello",
            "before": {"metadata": '{"a": "ä"}'},
            "fields": {"metadata": '{"a": "ä"}', "late": "x"},
        },
    )


@pytest.mark.parametrize(
    "size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 2_000_000]
)
async def test_content_arrives_as_it_is(client: Client, receiver: Receiver, size: int) -> None:
    # Line ends and beginnings of the boundary are part of the content.
    content = (b"\r\n--" + BOUNDARY.encode()[:-1] + bytes(range(256)) * 9)[:-1] * (size // 2000 + 1)
    status, told = await post(client, form(file_part(content[:size]), form_field("metadata", "{}")))
    assert (status, told["fields"]) == (200, {"metadata": "{}"})
    assert told["content"].encode("latin-1") == content[:size]
    assert receiver.longest <= 2 * CHUNK_BYTES


async def test_a_form_in_small_pieces(client: Client) -> None:
    body = form(form_field("metadata", "{}"), file_part(b"one\r\ntwo"), form_field("late", "x"))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 3):
            yield body[start : start + 3]

    status, told = await post(client, pieces())
    assert (status, told["content"], told["fields"]) == (200, "one\r\ntwo", {"metadata": "{}", "late": "x"})


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('filename="a;b;c.txt"', "a;b;c.txt"),
        ('filename="ä ö.txt"', "ä ö.txt"),
        (r'filename="a\"b.txt"', 'a"b.txt'),
        (r'filename="C:\dir\a.txt"', r"C:\dir\a.txt"),
        (r'filename="\\server\a\\"', "\\server\\a\\"),
        ('filename="a\\"', "a\\"),
        (r'filename="a\"; b\"', 'a"; b\\'),
        ('filename="../../x"', "../../x"),
        ("filename=a.txt", "a.txt"),
        ("filename=a.txt; filename*=UTF-8''%E2%82%AC.txt", "€.txt"),
        ("filename*=utf-8'en'%E2%82%AC.txt", "€.txt"),
        ("filename=a.txt; filename*=utf-99''b.txt", "a.txt"),
        ("filename*=UTF-8''%FF.txt", "�.txt"),
        ('filename=""', ""),
        ("", ""),
    ],
)
async def test_names_of_files(client: Client, disposition: str, name: str) -> None:
    status, told = await post(client, form(part(f'name="file"; {disposition}'.rstrip("; "), b"x")))
    assert (status, told.get("name")) == (200, name)


async def test_names_in_another_encoding(client: Client) -> None:
    body = form(file_part(b"x", "NAME.txt")).replace(b"NAME", "ä".encode("latin-1"))
    assert (await post(client, body))[1]["name"] == "�.txt"


@pytest.mark.parametrize("given", ["text/plain; charset=utf-8", "application/pdf"])
async def test_media_types(client: Client, given: str) -> None:
    status, told = await post(client, form(file_part(b"x", "a", f"Content-Type: {given}")))
    assert (status, told["type"]) == (200, given)


@pytest.mark.parametrize("given", ["X-Other: x", "Content-Type: text", f"Content-Type: a/{'b' * 300}"])
async def test_what_is_no_media_type(client: Client, given: str) -> None:
    status, told = await post(client, form(file_part(b"x", "a", given)))
    assert (status, told["type"]) == (200, None)


NESTED = "Content-Type: multipart/mixed; boundary=c"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (form(file_part(b"x", "a", "Content-Encoding: gzip")), "'file' of the form: it has a Content-Enc"),
        (form(file_part(b"x", "a", "Content-Transfer-Encoding: base64")), "it has a Content-Transfer-Enc"),
        (form(file_part(b"x", "a", NESTED)), "'file' of the form: it is multipart"),
        (form(file_part(b"x", "a", "Content-Type: multipart/mixed")), "part 1 of the form"),
        (form(file_part(b"x"), file_part(b"y")), "it has more than one file"),
        (form(form_field("a", "1"), form_field("a", "2"), file_part(b"x")), "'a' of the form: the form has"),
        (form(part("", b"x")), "part 1 of the form: it has no name"),
        (
            form(part('name="' + "\\\\" * 60, b"x")),
            "part 1 of the form: it has a malformed Content-Disposition",
        ),
        (form(part('name="file', b"x")), "part 1 of the form: it has a malformed Content-Disposition"),
        (form(part("name", b"x")), "part 1 of the form: it has a malformed"),
        (form(form_field("a", "1"), b"--" + BOUNDARY.encode() + b"\r\nX: y\r\n\r\n\r\n"), "part 2 of the"),
        (form(form_field("a", "1"), b"--" + BOUNDARY.encode() + b"\r\nX y\r\n\r\n\r\n"), "part 2 of the"),
        (form(form_field("a", "\udcff"[:0]), part('name="b"', b"\xff")), "'b' of the form: it is not UTF-8"),
        (file_part(b"x" * 300_000), "'file' of the form: it ends too early"),
        (file_part(b"x") + b"--" + BOUNDARY.encode() + b"x\r\n", "of the form: it "),
        (form(file_part(b"x"), form_field("a", "1"))[:-26], "'a' of the form: it ends too early"),
        (b"", "part 1 of the form"),
        (b"no form", "part 1 of the form"),
        (b"\n" * (MAX_LINES + 1), "part 1 of the form: it has too many lines"),
        (b"x" * 10_000, "part 1 of the form: a line of it is too long"),
        (
            form(part('name="file"', b"", f"X: {'y' * 10_000}")),
            "part 1 of the form: a line of it is too long",
        ),
        (form(part('name="file"', b"", *(f"X-{n}: y" for n in range(20)))), "part 1 of the form"),
    ],
)
async def test_malformed_forms(client: Client, body: bytes, named: str) -> None:
    status, told = await post(client, body)
    assert (status, named in told["detail"]) == (400, True), told
    assert BOUNDARY not in told["detail"]


async def test_forms_without_a_file(client: Client) -> None:
    for body, content_type in ((form(form_field("a", "1")), FORM), (b"", None)):
        status, told = await post(client, body, content_type)
        assert (status, told["detail"][0]["loc"]) == (422, ["body", "file"])


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "multipart/mixed; boundary=b"])
async def test_other_bodies(client: Client, content_type: str) -> None:
    assert (await post(client, b"{}", content_type))[0] == 415


@pytest.mark.parametrize("content_type", ["multipart/form-data", f"{FORM}{'b' * 60}"])
async def test_bad_boundaries(client: Client, content_type: str) -> None:
    status, told = await post(client, form(file_part(b"x")), content_type)
    assert (status, told["detail"]) == (400, "cannot read the form: it is malformed")


async def test_compressed_bodies(client: Client) -> None:
    headers = {"Content-Type": FORM, "Content-Encoding": "gzip"}
    for path in ("/form", "/raw"):
        async with client.post(path, data=b"x", headers=headers) as reply:
            assert reply.status == 415


async def test_limits_of_fields(client: Client) -> None:
    for parts in (
        [form_field("a", "x" * (MAX_FIELD_BYTES + 1))],
        [form_field(name, "x" * (MAX_FIELD_BYTES // 2)) for name in "abc"],
        [form_field(f"f{number}", "x") for number in range(MAX_PARTS + 1)],
    ):
        status, told = await post(client, form(*parts, file_part(b"x")))
        assert (status, "the form" in told["detail"]) == (413, True), told


async def test_too_large_by_declaration(client: Client, receiver: Receiver) -> None:
    for path in ("/form", "/raw"):
        async with wired(client) as wire:
            await wire.send(upload_head(path, 10**9, "", "Expect: 100-continue"))
            # Neither is the client told to send nor is anything read.
            head = await wire.head()
            assert head.startswith("HTTP/1.1 413 ")
            assert "connection: close" in head.lower()
    assert not receiver.begun.is_set()


async def test_too_large_on_the_way(client: Client) -> None:
    async with wired(client) as wire:
        body = form(file_part(b"x" * (LIMIT + 10_000)))
        await wire.send(upload_head("/form", len(body) + 1000) + body)
        head = await wire.head()
        assert head.startswith("HTTP/1.1 413 ")
        assert "connection: close" in head.lower()


async def test_expectations(client: Client) -> None:
    body = form(file_part(b"hello"))
    async with wired(client) as wire:
        await wire.send(upload_head("/form", len(body), "", "Expect: 100-continue", "Connection: close"))
        assert await wire.head() == "HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(body)
        assert (await wire.head()).startswith("HTTP/1.1 200 ")
        assert b'"content":"hello"' in await wire.rest()


async def test_who_may_not_upload_is_not_told_to_send(client: Client) -> None:
    async with wired(client) as wire:
        await wire.send(upload_head("/refused", 100, "", "Expect: 100-continue"))
        assert (await wire.head()).startswith("HTTP/1.1 403 ")


async def test_a_client_that_leaves(client: Client, receiver: Receiver) -> None:
    body = form(file_part(b"x" * 500_000))
    async with wired(client) as wire:
        await wire.send(upload_head("/form", len(body)) + body[:-100])
        await receiver.begun.wait()
    await receiver.ended.wait()
    assert isinstance(receiver.failure, ConnectionError)


async def test_nothing_comes(receiver: Receiver) -> None:
    body = form(file_part(b"x" * 500_000))
    async with serving(receiver.routes(), rates=MinimumRates(body=MinimumRate(1024, 0.05))) as client:
        for path in ("/form", "/raw"):
            async with wired(client) as wire:
                await wire.send(upload_head(path, len(body)) + body[:-100])
                head = await wire.head()
                assert head.startswith("HTTP/1.1 408 ")
                assert "connection: close" in head.lower()


async def test_broken_transfer_encoding(receiver: Receiver) -> None:
    head = upload_head("/form", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    begin = form(file_part(b"x" * 300_000))[:-100]
    # The library's parser may say nothing, and then nothing more comes.
    async with (
        serving(receiver.routes(), rates=MinimumRates(body=MinimumRate(1024, 0.5))) as client,
        wired(client) as wire,
    ):
        await wire.send(head + b"%x\r\n%b\r\n" % (len(begin), begin))
        await receiver.begun.wait()
        await wire.send(b"zz\r\n")
        assert (await wire.head()).startswith(("HTTP/1.1 400 ", "HTTP/1.1 408 "))
    assert isinstance(receiver.failure, GatewayError)


async def test_raw_bodies(client: Client) -> None:
    content = bytes(range(256)) * 5000
    status, told = await post(client, content, "application/octet-stream", "/raw")
    assert (status, told["content"].encode("latin-1")) == (200, content)
    assert await post(client, b"", None, "/raw") == (200, {"content": ""})
