"""Authentication and audit of SCIM requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web

from gatewayd import ids
from gatewayd.audit.records import AuditActor, AuditActorKind, AuditEntry, AuditResult
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.http.audit import (
    AUDITED_REFUSALS,
    MAX_VALUE_CHARACTERS,
    READ_METHODS,
    audit_log,
    shorten_value,
    write_entry,
)
from gatewayd.http.context import FAILURE, REQUEST_ID, SITE, client_address
from gatewayd.http.routes import Route
from gatewayd.scim.filters.list_query import PARAMETERS
from gatewayd.scim.records import PublicSite, Resource
from gatewayd.scim.renderer import ROOT
from gatewayd.scim.request_log import LoggedRequest, ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.scim.tokens.rotation import fingerprint

MAX_IDS_SHOWN: Final = 3
MAX_ID_CHARACTERS: Final = 64
"""Shown characters of an unknown user id."""


@dataclass(slots=True)
class AuditRecord:
    """Audit record of a request: its target, and the resource before and after it without members.

    `skipped` are the ids of members that no user has. A refused request has no record.
    """

    target: str = ""
    before: Resource | None = None
    after: Resource | None = None
    changes: str = ""
    skipped: Sequence[str] = ()


AUDIT_RECORD: web.RequestKey[AuditRecord] = web.RequestKey("audit_record", AuditRecord)
# The fingerprint of the client's token.
TOKEN_MARK: web.RequestKey[str] = web.RequestKey("token_mark", str)


class ScimAuthenticator:
    """Authenticator of SCIM clients, which audits each of their requests, also refused ones.

    `provider` is the name of the client in the audit. `site` is the base of resource addresses, if it has
    one.
    """

    def __init__(
        self,
        tokens: ScimTokens,
        activity: ScimRequestLog,
        provider: str,
        clock: ids.Clock = ids.now,
        site: PublicSite | None = None,
        freshness: Freshness = ALWAYS_FRESH,
    ) -> None:
        self._tokens = tokens
        self._activity = activity
        self._provider = provider
        self._clock = clock
        self._site = site or PublicSite()
        self.freshness = freshness

    async def check(self, request: web.Request) -> None:
        """Raise unauthenticated unless the request has the SCIM token, in one header `Authorization`.

        Raises unavailable if the database must be asked and does not answer.
        """
        token = token_of(", ".join(request.headers.getall(hdrs.AUTHORIZATION, [])))
        if self._tokens.enabled and not self.freshness.is_fresh():
            await self.freshness.renew()
        self._tokens.check(token)
        request[AUDIT_RECORD] = AuditRecord()
        request[TOKEN_MARK] = fingerprint(token)
        if self._site.address:
            request[SITE] = self._site.address

    def note(self, route: Route | None, request: web.Request, status: int) -> None:
        """Audit an answered request and add it to the log; `route` is None for an unknown path."""
        failure = request.get(FAILURE)
        detail = failure.message if failure is not None else ""
        address, request_id = client_address(request), request[REQUEST_ID]
        path = loggable_path(request)
        self._activity.add(
            LoggedRequest(self._clock(), request.method, path, status, address, request_id, detail)
        )
        if route is None:
            return
        is_in = AUDIT_RECORD in request
        audited = request.get(AUDIT_RECORD) or AuditRecord()
        fields = {
            "by": f"scim:{self._provider or '-'}" if is_in else "unknown",
            "address": address,
            "request_id": request_id,
            "target": shorten(audited.target or request.path.removeprefix(ROOT), MAX_VALUE_CHARACTERS),
            "status": status,
            "refused": detail,
            "before": changed_attributes(audited.before, audited.after),
            "after": changed_attributes(audited.after, audited.before),
            "members": audited.changes,
            "skipped": summarise_ids(audited.skipped),
        }
        line = {name: value for name, value in fields.items() if value}
        action = f"scim: {route.summary.lower()}"
        if request.method in READ_METHODS and (failure is None or failure.kind not in AUDITED_REFUSALS):
            audit_log.info("%s", action, extra=line)
            return
        kind = AuditActorKind.SCIM if is_in else AuditActorKind.ANONYMOUS
        entry = AuditEntry(
            action,
            AuditActor(kind, str(fields["by"]) if is_in else "", request.get(TOKEN_MARK, "")),
            address,
            str(fields["target"]),
            before=changed_attributes(audited.before, audited.after),
            after={**changed_attributes(audited.after, audited.before), **members_of(audited)},
            request_id=request_id,
            result=AuditResult.REFUSED if failure is not None else AuditResult.DONE,
            detail=detail,
        )
        write_entry(request, entry, line)


def token_of(authorization: str) -> str:
    """Return the token of a header `Authorization` (RFC 6750, 2.1); raises unauthenticated without one."""
    if not authorization:
        raise _refused("cannot accept the request: the header Authorization is required")
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if not token or any(character.isspace() for character in token):
        raise _refused("cannot accept the header Authorization: expected Bearer <token>")
    if scheme.lower() != "bearer":
        raise _refused("cannot accept the header Authorization: its scheme is not Bearer")
    return token


def _refused(message: str) -> GatewayError:
    return GatewayError(ErrorKind.UNAUTHENTICATED, message)


def loggable_path(request: web.Request) -> str:
    """Return the path with the query parameters of lists; other parameters may be secrets."""
    asked = [f"{name}={value}" for name, value in request.query.items() if name.lower() in PARAMETERS]
    return f"{request.path}?{'&'.join(asked)}" if asked else request.path


def changed_attributes(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the attributes of a resource that are absent or different in its other state."""
    other = other or {}
    return {
        name: shorten_value(value)
        for name, value in (one or {}).items()
        if name not in other or other[name] != value
    }


def members_of(audited: AuditRecord) -> dict[str, Any]:
    """Return the changes of members, and the ids that no user has, as values of a row."""
    found = {"members": audited.changes, "skipped": summarise_ids(audited.skipped)}
    return {name: value for name, value in found.items() if value}


def summarise_ids(user_ids: Sequence[str]) -> str:
    """Return the number of ids and the first three of them for a sentence; "" for none."""
    if not user_ids:
        return ""
    named = ", ".join(repr(shorten(user_id, MAX_ID_CHARACTERS)) for user_id in user_ids[:MAX_IDS_SHOWN])
    more = ", ..." if len(user_ids) > MAX_IDS_SHOWN else ""
    return f"{len(user_ids)}: {named}{more}"
