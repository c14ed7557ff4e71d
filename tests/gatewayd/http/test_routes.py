"""Tests for gatewayd.http.routes."""

from aiohttp import web
from pydantic import BaseModel

from gatewayd.http.routes import RouteAccess, RouteDialect, RouteGroup


class Form(BaseModel):
    """A body."""


async def nothing(request: web.Request) -> web.StreamResponse:
    return web.Response()


def test_rows_of_a_noun_share_the_head_of_their_path_and_their_tag() -> None:
    row = RouteGroup("/api/v1/things", "things").row(
        "POST", "/{id}", nothing, RouteAccess.ADMIN, "Change", Form
    )
    assert (row.method, row.path, row.tag) == ("POST", "/api/v1/things/{id}", "things")
    assert (row.handler, row.access, row.summary, row.request) == (nothing, RouteAccess.ADMIN, "Change", Form)


def test_a_row_can_neither_be_interrupted_nor_hold_slashes_unless_it_says_so() -> None:
    row = RouteGroup("", "t").row("GET", "/x", nothing, RouteAccess.PUBLIC, "Look")
    assert not row.interruptible
    assert not row.slashes
    assert row.dialect is RouteDialect.NATIVE
