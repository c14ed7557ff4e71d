"""Tests for gatewayd.http.audit."""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from gatewayd.accounts.records import Role
from gatewayd.audit.refusals import MAX_REFUSALS_OF_ONE
from gatewayd.audit.trail import AuditTrail
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.http.audit import (
    MAX_ACCOUNT_CHARACTERS,
    MAX_VALUE_CHARACTERS,
    audit_session,
    note_change,
    shorten_value,
)
from gatewayd.http.body import json_reply
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.observe.logs import TextFormatter
from tests.fakes.http.public_app import bearer, serving
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.memory_audit import MemoryAuditLog

ACTORS = {"admin": make_actor("a", Role.ADMIN)}


async def change(request: web.Request) -> web.StreamResponse:
    note_change(request, "ada@example.org", {"role": "admin", "name": None, "password": "hush"})
    return json_reply(data=True)


async def change_and_fail(request: web.Request) -> web.StreamResponse:
    note_change(request, "ada@example.org")
    raise GatewayError(ErrorKind.UNAVAILABLE, "the database cannot be reached")


async def refuse(request: web.Request) -> web.StreamResponse:
    raise GatewayError(ErrorKind.CONFLICT, "it is taken")


async def change_much(request: web.Request) -> web.StreamResponse:
    note_change(request, "x" * 5000, {"user_ids": ["y" * 100] * 100})
    return json_reply(data=True)


async def change_nothing_more(request: web.Request) -> web.StreamResponse:
    note_change(request, "ada@example.org")
    return json_reply(data=True)


async def sign_in(request: web.Request) -> web.StreamResponse:
    audit_session(request, "sign-in refused", "z" * 5000 + "\n forged", refused="cannot sign in")
    return json_reply(data=True)


def audited(caplog: pytest.LogCaptureFixture) -> Sequence[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "gatewayd.audit"]


@pytest.mark.parametrize(("handler", "lines"), [(change_and_fail, 1), (refuse, 0)])
async def test_a_change_whose_answer_fails_has_its_line(
    caplog: pytest.LogCaptureFixture, handler: Any, lines: int
) -> None:
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        async with serving([Route("POST", "/x", handler, RouteAccess.ADMIN, "Do it")], ACTORS) as client:
            reply = await client.post("/x", headers=bearer("admin"))
            assert reply.status >= 400
    assert len(audited(caplog)) == lines


async def fields(caplog: pytest.LogCaptureFixture, handler: Any, access: RouteAccess) -> dict[str, Any]:
    """Send one request and return the one line of the audit, and its text."""
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        async with serving([Route("POST", "/x", handler, access, "Do it")], ACTORS) as client:
            reply = await client.post("/x", headers={**bearer("admin"), "X-Request-Id": "r1"})
            assert reply.status == 200
    (record,) = audited(caplog)
    return {**vars(record), "text": TextFormatter(journal=True).format(record)}


@pytest.mark.parametrize("access", [RouteAccess.ADMIN, RouteAccess.VERIFIED])
async def test_a_change_names_who_whom_and_the_new_values(
    caplog: pytest.LogCaptureFixture, access: RouteAccess
) -> None:
    line = await fields(caplog, change, access)
    assert line["text"] == (
        "<6>gatewayd.audit: POST /x by=a@example.org target=/x request_id=r1 subject=ada@example.org"
        ' values="{\\"role\\": \\"admin\\", \\"password\\": \\"[redacted]\\"}"'
    )


async def test_a_change_without_values(caplog: pytest.LogCaptureFixture) -> None:
    line = await fields(caplog, change_nothing_more, RouteAccess.ADMIN)
    assert line["text"].endswith(" request_id=r1 subject=ada@example.org")


async def test_what_is_told_of_a_change_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    line = await fields(caplog, change_much, RouteAccess.ADMIN)
    assert len(line["subject"]) == MAX_VALUE_CHARACTERS + 3
    assert len(line["values"]["user_ids"]) == MAX_VALUE_CHARACTERS + 3


def test_no_more_of_a_long_list_is_written_than_can_be_shown() -> None:
    # What is no JSON would raise if it were written.
    shown = shorten_value([*["x"] * MAX_VALUE_CHARACTERS, object()])
    begins = json.dumps(["x"] * MAX_VALUE_CHARACTERS, separators=(",", ":"))
    assert shown == shorten(begins, MAX_VALUE_CHARACTERS)


async def test_the_account_of_a_sign_in_is_bounded_and_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    line = await fields(caplog, sign_in, RouteAccess.PUBLIC)
    assert line["account"] == "z" * MAX_ACCOUNT_CHARACTERS + "..."
    assert line["text"].startswith("<6>gatewayd.audit: sign-in refused account=zzz")
    assert line["text"].endswith(' address=127.0.0.1 request_id=r1 refused="cannot sign in"')


async def refuse_sign_in(request: web.Request) -> web.StreamResponse:
    audit_session(request, "sign-in refused", "ada@example.org", refused="cannot sign in")
    raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot sign in")


async def test_a_flood_of_refused_sign_ins_has_two_lines_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now, store = [100.0], MemoryAuditLog()
    trail = AuditTrail(store, monotonic=lambda: now[0])
    row = Route("POST", "/x", refuse_sign_in, RouteAccess.PUBLIC, "Do it")
    with caplog.at_level(logging.INFO):
        async with serving([row], trail=trail) as client:
            for _ in range(20):
                assert (await client.post("/x")).status == 401
        now[0] += 60
        task = asyncio.ensure_future(trail.run())
        await trail.drain(5)
        task.cancel()
    told = [
        (record.name, record.getMessage()) for record in caplog.records if record.name != "aiohttp.access"
    ]
    assert told == [
        ("gatewayd.audit", "sign-in refused"),
        ("gatewayd.http.errors", "request refused: cannot sign in"),
        ("gatewayd.audit.trail", "further in a minute: sign-in refused"),
    ]
    assert vars(caplog.records[-1])["refusals"] == 19
    # Their rows have a bound of their own.
    assert [row.action for row in store.kept].count("sign-in refused") == MAX_REFUSALS_OF_ONE
