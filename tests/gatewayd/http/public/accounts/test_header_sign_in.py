"""Tests for gatewayd.http.public.accounts.header_sign_in; test_trusted_headers.py has those over HTTP."""

import logging

import pytest
from aiohttp.test_utils import make_mocked_request

from gatewayd.accounts.identity.records import (
    ExternalIdentity,
    IdentityRules,
    RefusalCode,
    ResolvedAccount,
    ResolveOutcome,
)
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.context import REQUEST_ID
from gatewayd.http.public.accounts.header_sign_in import HeaderSignIn
from gatewayd.http.trusted_headers import HeaderNames, TrustedHeaders
from tests.fakes.accounts.records import user


class NamedHeaders(TrustedHeaders):
    """Names the same person for each request."""

    def __init__(self, identity: ExternalIdentity | None) -> None:
        super().__init__(HeaderNames("x-email"))
        self.identity = identity

    def find_identity(self, request: object) -> ExternalIdentity | None:
        return self.identity


async def test_each_outcome_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    identity = ExternalIdentity("header", "header", "ada@x", email="ada@x", email_verified=True)

    async def resolve(found: ExternalIdentity, rules: IdentityRules) -> ResolvedAccount:
        if rules.roles.is_managed:
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot sign in: no", code=RefusalCode.ROLE_MISSING.value)
        return ResolvedAccount(user("ada", email=found.email), ResolveOutcome.CREATED, ("+staff",))

    headers = NamedHeaders(None)
    sign_in, request = HeaderSignIn(headers, resolve), make_mocked_request("POST", "/")
    request[REQUEST_ID] = "r"
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        assert await sign_in.sign_in(request) is None
        headers.identity = identity
        found = await sign_in.sign_in(request)
        assert found is not None
        headers.identity = ExternalIdentity("header", "header", "ada@x", email="ada@x", roles=("root",))
        with pytest.raises(GatewayError):
            await sign_in.sign_in(request)
    lines = [(record.getMessage(), record.__dict__) for record in caplog.records]
    assert [text for text, _ in lines] == ["sign-in", "sign-in refused"]
    assert (lines[0][1]["changes"], lines[0][1]["method"]) == ("+staff", "header")
    assert lines[1][1]["refused"] == "cannot sign in: no"
