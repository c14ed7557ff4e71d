"""Tests for gatewayd.plugin_host.actors."""

from dataclasses import replace

import pytest

from gatewayd.accounts.records import CredentialKind, Role, UserChange
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.plugin_host.actors import none_if_not_found
from gatewayd.plugins.runtime.call_context import current_asker
from tests.fakes.plugins.host_services import Hosting
from tests.fakes.providers.models import make_actor


async def test_an_account_has_its_own_rights(made: Hosting) -> None:
    group = await made.documents.accounts.grant_keys(made.ann)
    actor = await made.actors.of(made.ann.id)
    assert actor is not None
    assert (actor.user, actor.group_ids) == (made.ann, (group,))
    assert (actor.may("features", "api_keys"), actor.may("workspace", "models")) == (True, False)
    assert await made.actors.of("nobody") is None
    assert await made.actors.of("\0") is None


async def test_who_acts_has_to_be_active(made: Hosting) -> None:
    assert (await made.actors.verified(made.ann.id)).user_id == made.ann.id
    await made.documents.accounts.users.change(made.ann.id, UserChange(active=False), None)
    with pytest.raises(GatewayError) as refused:
        await made.actors.verified(made.ann.id)
    assert refused.value.kind is ErrorKind.FORBIDDEN
    with pytest.raises(GatewayError) as unknown:
        await made.actors.verified("nobody")
    assert unknown.value.kind is ErrorKind.NOT_FOUND


async def test_an_owner_has_every_permission_and_is_no_administrator(made: Hosting) -> None:
    owner = await made.actors.owner(made.ann.id)
    assert owner is not None
    assert owner.may("workspace", "models")
    assert (owner.is_admin, owner.user.role) == (False, Role.USER)
    assert not owner.may("chat", "temporary_enforced")
    assert await made.actors.owner("nobody") is None


@pytest.mark.parametrize("kind", [CredentialKind.CONTROL, CredentialKind.SESSION])
async def test_who_has_no_account_reads_only_in_a_call_of_their_own(
    made: Hosting, kind: CredentialKind
) -> None:
    caller = replace(make_actor("control:root"), kind=kind)
    assert await made.actors.find_reader("control:root") is None
    token = current_asker.set(caller)
    try:
        reads = kind is CredentialKind.CONTROL
        assert (await made.actors.find_reader("control:root") is caller) == reads
        assert await made.actors.find_reader("control:other") is None
        assert await made.actors.of("control:root") is None
        with pytest.raises(GatewayError, match="cannot find user"):
            await made.actors.verified("control:root")
        ann = await made.actors.reader(made.ann.id)
        assert (ann.user, ann.is_admin) == (made.ann, False)
    finally:
        current_asker.reset(token)


def test_everybody_is_no_account(made: Hosting) -> None:
    everybody = made.actors.unrestricted()
    assert everybody.is_admin
    assert everybody.kind is CredentialKind.CONTROL


async def give(error: GatewayError | None) -> int:
    if error is not None:
        raise error
    return 7


async def test_only_what_is_missing_is_none() -> None:
    assert await none_if_not_found(give(None)) == 7
    assert await none_if_not_found(give(not_found("chat", "c"))) is None
    with pytest.raises(GatewayError):
        await none_if_not_found(give(invalid("cannot")))
