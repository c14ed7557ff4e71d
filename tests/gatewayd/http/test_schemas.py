"""Tests for gatewayd.http.schemas."""

from functools import partial

from aiohttp import web

from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import (
    EVENT_STREAM,
    INTEGER,
    TEXT,
    Reply,
    answers,
    choice,
    either,
    extended,
    listed,
    mapped,
    record,
)


class Handlers:
    """Declares what it answers."""

    @answers(TEXT, EVENT_STREAM, query={"page": "Number of the page."})
    async def show(self, request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def silent(self, request: web.Request) -> web.StreamResponse:
        return web.Response()


def test_a_row_has_what_its_handler_declares() -> None:
    handlers = Handlers()
    for handler in (handlers.show, partial(handlers.show)):
        row = Route("GET", "/", handler, RouteAccess.PUBLIC, "Show")
        assert row.reply == Reply(TEXT, (EVENT_STREAM,))
        assert dict(row.query) == {"page": "Number of the page."}
    silent = Route("GET", "/", handlers.silent, RouteAccess.PUBLIC, "Show")
    assert (silent.reply, dict(silent.query)) == (None, {})


def test_a_row_may_say_it_itself() -> None:
    own = Reply(INTEGER)
    row = Route("GET", "/", Handlers().show, RouteAccess.PUBLIC, "Show", reply=own, query={"id": "Id."})
    assert row.reply is own
    assert dict(row.query) == {"id": "Id."}


def test_objects_say_what_they_always_have() -> None:
    def base() -> dict[str, object]:
        return record({"b": INTEGER}, a=TEXT)

    assert base()["required"] == ["a"]
    more = extended(base, {"d": TEXT}, c=INTEGER)
    assert list(more["properties"]) == ["a", "b", "c", "d"]
    assert more["required"] == ["a", "c"]


def test_words_of_json_schema() -> None:
    assert listed(TEXT) == {"type": "array", "items": TEXT}
    assert mapped(TEXT) == {"type": "object", "additionalProperties": TEXT}
    assert either(TEXT, INTEGER) == {"anyOf": (TEXT, INTEGER)}
    assert choice("a", "b") == {"enum": ("a", "b")}
