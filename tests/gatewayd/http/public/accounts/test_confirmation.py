"""Tests for gatewayd.http.public.accounts.confirmation."""

from dataclasses import replace

import pytest

from gatewayd.accounts.records import CredentialKind
from gatewayd.accounts.sessions import CONFIRMATION_SECONDS
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.accounts.confirmation import UNCONFIRMED, check_confirmed
from tests.fakes.accounts.services import Accounts


async def test_only_a_fresh_session_is_enough() -> None:
    accounts = Accounts()
    token = await accounts.session(await accounts.add_user())
    caller = await accounts.authenticator.authenticate(token, "GET", "/x")
    await check_confirmed(accounts.sessions, caller, "do it")
    for other in (
        replace(caller, kind=CredentialKind.KEY),
        replace(caller, jti=None),
        replace(caller, jti="gone"),
    ):
        with pytest.raises(GatewayError, match="cannot do it") as caught:
            await check_confirmed(accounts.sessions, other, "do it")
        assert (caught.value.kind, caught.value.code) == (ErrorKind.FORBIDDEN, UNCONFIRMED)
    accounts.time += CONFIRMATION_SECONDS + 1
    with pytest.raises(GatewayError):
        await check_confirmed(accounts.sessions, caller, "do it")
