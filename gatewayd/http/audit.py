"""Audit log of HTTP requests: a line and a row for each change, sign-in and refusal, without secrets.

A line goes to the logger `gatewayd.audit`, the row to the chain of `gatewayd.audit`; both come from one call.
The reply to a change waits for its row (`wait_for_rows`).
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.accounts.records import Actor, CredentialKind, User
from gatewayd.audit.records import AuditActor, AuditActorKind, AuditEntry, AuditResult
from gatewayd.audit.trail import AuditTicket, AuditTrail
from gatewayd.catalog.access_grants import render_grant
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import ACTOR, REQUEST_ID, client_address
from gatewayd.http.control.peer import PEER
from gatewayd.http.routes import Route, RouteAccess

audit_log = logging.getLogger("gatewayd.audit")

READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""

ANSWER_USES: Final = frozenset({RequestUse.ANSWER, RequestUse.EMBEDDINGS})
"""Uses of requests that ask a model or an index and change nothing."""

AUDITED_REFUSALS: Final = frozenset({ErrorKind.FORBIDDEN, ErrorKind.UNAUTHENTICATED})
"""Kinds of failures that may be refusals of a caller."""

MAX_VALUE_CHARACTERS: Final = 1000
"""Longest JSON of one value in an audit line, and longest subject."""

MAX_ACCOUNT_CHARACTERS: Final = 254
"""Longest account name in the line of a sign-in. Unauthenticated clients choose it."""


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """The name of the object that a request changes, the new values, and those that they replace."""

    subject: str
    values: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)


AUDIT_TRAIL: Final[web.AppKey[AuditTrail]] = web.AppKey("audit_trail", AuditTrail)
AUDITED_CHANGE: Final[web.RequestKey[AuditedChange]] = web.RequestKey("audited_change", AuditedChange)
AUDIT_TICKET: Final[web.RequestKey[AuditTicket]] = web.RequestKey("audit_ticket", AuditTicket)
"""The ticket of the last change of a request. All earlier entries are stored before it."""

IS_REFUSAL_RECORDED: Final[web.RequestKey[bool]] = web.RequestKey("is_refusal_recorded", bool)
IS_LINE_LEFT_OUT: Final[web.RequestKey[bool]] = web.RequestKey("is_line_left_out", bool)
"""Whether the log has the refusal only in the count of a minute."""

REFUSED_CREDENTIAL: Final[web.RequestKey[bool]] = web.RequestKey("refused_credential", bool)
"""Whether the request was refused for the credential that it has."""


def note_change(
    request: web.Request,
    subject: str,
    values: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
) -> None:
    """Store the change of a request for its audit line. No value may be a secret; None is left out.

    Of `before`, the values that `values` replace are kept; without `values`, as at a removal, all.
    """
    kept = {name: value for name, value in (values or {}).items() if value is not None}
    replaced = {name: value for name, value in (before or {}).items() if name in kept or not values}
    request[AUDITED_CHANGE] = AuditedChange(subject, kept, replaced)


def note_grants(
    request: web.Request,
    subject: str,
    grants: Iterable[Grant],
    before: Iterable[Grant] | None = None,
    **values: Any,
) -> None:
    """Store the new access list of an object, the one before, and other new values, for the audit line."""
    replaced = None if before is None else {"access_grants": [render_grant(grant) for grant in before]}
    note_change(
        request, subject, {**values, "access_grants": [render_grant(grant) for grant in grants]}, replaced
    )


def audited_user(user: User) -> dict[str, Any]:
    """Return the values of an account before a change."""
    return {"name": user.name, "email": user.email, "role": user.role.value, "active": user.active}


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
    write_change(request, f"{route.method} {route.path}", request.path, fields)


def write_change(request: web.Request, action: str, target: str, fields: Mapping[str, Any]) -> None:
    """Write the line and the row of a change; `fields` are those of the line besides the noted change."""
    noted = noted_change(request)
    entry = AuditEntry(
        action,
        audit_actor(request),
        _address(request),
        target,
        noted.get("subject", ""),
        noted.get("before") or {},
        noted.get("values") or {},
        request[REQUEST_ID],
    )
    write_entry(request, entry, {**fields, **noted})


def write_entry(request: web.Request, entry: AuditEntry, fields: Mapping[str, Any]) -> None:
    """Write the line of an entry, and record its row."""
    audit_log.info("%s", entry.action, extra=dict(fields))
    _record(request, entry)


async def wait_for_rows(request: web.Request) -> None:
    """Return when the rows of the changes of a request are stored; raises unavailable if that fails."""
    ticket = request.get(AUDIT_TICKET)
    if ticket is not None:
        await request.app[AUDIT_TRAIL].wait(ticket)


def audit_refusal(request: web.Request, route: str, failure: GatewayError) -> None:
    """Record that a request was forbidden, or that its credential was refused; floods are only counted.

    A sign-in that was refused has its own row (`audit_session`).
    """
    is_refusal = failure.kind is ErrorKind.FORBIDDEN or request.get(REFUSED_CREDENTIAL, False)
    if not is_refusal or IS_REFUSAL_RECORDED in request:
        return
    actor, address = audit_actor(request), _address(request)
    target, request_id = shorten(request.path, MAX_VALUE_CHARACTERS), request[REQUEST_ID]
    entry = AuditEntry(
        f"refused: {request.method} {route}",
        actor,
        address,
        target,
        request_id=request_id,
        result=AuditResult.REFUSED,
        detail=failure.message,
    )
    if _record(request, entry):
        fields = {"by": actor.name or "unknown", "address": address, "target": target}
        given = {name: value for name, value in fields.items() if value}
        extra = {**given, "request_id": request_id, "refused": failure.message}
        audit_log.info("%s", entry.action, extra=extra)


def audit_actor(request: web.Request) -> AuditActor:
    """Return who sends a request: the unix user of the control socket, the account, or nobody known."""
    peer = request.get(PEER)
    if peer is not None:
        return AuditActor(AuditActorKind.UNIX, peer.name, str(peer.uid))
    actor = request.get(ACTOR)
    if actor is None:
        return AuditActor(AuditActorKind.ANONYMOUS)
    kind = AuditActorKind.KEY if actor.kind is CredentialKind.KEY else AuditActorKind.ACCOUNT
    return AuditActor(kind, actor.user.email, actor.user_id, actor.key_prefix)


def _address(request: web.Request) -> str:
    return "" if PEER in request else client_address(request)


def _record(request: web.Request, entry: AuditEntry) -> bool:
    """Record a row; return whether there is one."""
    trail = request.app.get(AUDIT_TRAIL)
    if trail is None:
        return False
    ticket = trail.record(entry)
    if ticket is not None and entry.result is AuditResult.DONE:
        request[AUDIT_TICKET] = ticket
    return ticket is not None


def is_noted(request: web.Request) -> bool:
    """Return whether a change was noted."""
    return AUDITED_CHANGE in request


def noted_change(request: web.Request) -> dict[str, Any]:
    """Return the noted subject and values, each shortened; an empty object without a noted change."""
    change = request.get(AUDITED_CHANGE)
    if change is None:
        return {}
    noted = {
        "subject": shorten(change.subject, MAX_VALUE_CHARACTERS),
        "values": {name: shorten_value(value) for name, value in change.values.items()} or None,
    }
    if change.before:
        noted["before"] = {name: shorten_value(value) for name, value in change.before.items()}
    return noted


def audit_session(request: web.Request, action: str, account: str, **more: str) -> None:
    """Write the line and the row of a sign-in or a sign-up: the account and the client address.

    `more` has the field `refused`, the reason, for a refused one; of these, a minute has one line for each
    address.
    """
    name = shorten(account, MAX_ACCOUNT_CHARACTERS)
    fields = {"account": name, "address": client_address(request), "request_id": request[REQUEST_ID]}
    refused = more.get("refused")
    if refused is not None:
        request[IS_REFUSAL_RECORDED] = True
    entry = AuditEntry(
        action,
        AuditActor(AuditActorKind.ANONYMOUS if refused is not None else AuditActorKind.ACCOUNT, name),
        client_address(request),
        request.path,
        after={name: value for name, value in more.items() if name != "refused"},
        request_id=request[REQUEST_ID],
        result=AuditResult.DONE if refused is None else AuditResult.REFUSED,
        detail=refused or "",
    )
    trail = request.app.get(AUDIT_TRAIL)
    if refused is not None and trail is not None and not trail.lines.admits(action, entry.address):
        request[IS_LINE_LEFT_OUT] = True
        _record(request, entry)
        return
    write_entry(request, entry, {**fields, **more})


def shorten_value(value: Any) -> Any:
    """Return a value, or the beginning of its JSON when the JSON is too long."""
    # Each item has one character at least, so that more items cannot fit.
    begins = value[:MAX_VALUE_CHARACTERS] if isinstance(value, list) else value
    text = orjson.dumps(begins).decode()
    return value if len(text) <= MAX_VALUE_CHARACTERS else shorten(text, MAX_VALUE_CHARACTERS)
