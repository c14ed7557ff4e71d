"""Audit log of HTTP requests: one line for each change and each sign-in, without secrets."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import render_grant
from gatewayd.catalog.records import Grant
from gatewayd.errors import shorten
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import REQUEST_ID, client_address
from gatewayd.http.routes import Route, RouteAccess

audit_log = logging.getLogger("gatewayd.audit")

READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""

ANSWER_USES: Final = frozenset({RequestUse.ANSWER, RequestUse.EMBEDDINGS})
"""Uses of requests that ask a model or an index and change nothing."""

MAX_VALUE_CHARACTERS: Final = 1000
"""Longest JSON of one value in an audit line, and longest subject."""

MAX_ACCOUNT_CHARACTERS: Final = 254
"""Longest account name in the line of a sign-in. Unauthenticated clients choose it."""


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """The name of the object that a request changes, and the new values."""

    subject: str
    values: Mapping[str, Any] = field(default_factory=dict)


AUDITED_CHANGE: Final[web.RequestKey[AuditedChange]] = web.RequestKey("audited_change", AuditedChange)


def note_change(request: web.Request, subject: str, values: Mapping[str, Any] | None = None) -> None:
    """Store the change of a request for its audit line. No value may be a secret; None is left out."""
    kept = {name: value for name, value in (values or {}).items() if value is not None}
    request[AUDITED_CHANGE] = AuditedChange(subject, kept)


def note_grants(request: web.Request, subject: str, grants: Iterable[Grant], **values: Any) -> None:
    """Store the new access list of an object, and other new values, for the audit line."""
    note_change(request, subject, {**values, "access_grants": [render_grant(grant) for grant in grants]})


def is_audited(route: Route, request: web.Request, actor: Actor) -> bool:
    """Return whether a successful request gets a line: a noted change, or a change by an administrator.

    A request counts as a change unless its row says otherwise, so that a new route is audited by default.
    """
    if AUDITED_CHANGE in request:
        return True
    if request.method in READ_METHODS or route.asks or not actor.is_admin:
        return False
    return route.access is RouteAccess.ADMIN or not (route.interruptible or route.use in ANSWER_USES)


def audit_change(route: Route, request: web.Request, actor: Actor) -> None:
    """Write the line of a change: the actor, the path, the subject and the new values."""
    fields: dict[str, Any] = {
        "by": actor.user.email,
        "target": request.path,
        "request_id": request[REQUEST_ID],
    }
    audit_log.info("%s %s", route.method, route.path, extra={**fields, **noted_change(request)})


def is_noted(request: web.Request) -> bool:
    """Return whether a change was noted."""
    return AUDITED_CHANGE in request


def noted_change(request: web.Request) -> dict[str, Any]:
    """Return the noted subject and values, each shortened; an empty object without a noted change."""
    change = request.get(AUDITED_CHANGE)
    if change is None:
        return {}
    return {
        "subject": shorten(change.subject, MAX_VALUE_CHARACTERS),
        "values": {name: shorten_value(value) for name, value in change.values.items()} or None,
    }


def audit_session(request: web.Request, action: str, account: str, **more: str) -> None:
    """Write the line of a sign-in or a sign-up: the account and the client address."""
    fields = {
        "account": shorten(account, MAX_ACCOUNT_CHARACTERS),
        "address": client_address(request),
        "request_id": request[REQUEST_ID],
    }
    audit_log.info("%s", action, extra={**fields, **more})


def shorten_value(value: Any) -> Any:
    """Return a value, or the beginning of its JSON when the JSON is too long."""
    # Each item has one character at least, so that more items cannot fit.
    begins = value[:MAX_VALUE_CHARACTERS] if isinstance(value, list) else value
    text = orjson.dumps(begins).decode()
    return value if len(text) <= MAX_VALUE_CHARACTERS else shorten(text, MAX_VALUE_CHARACTERS)
