"""Tests for gatewayd.accounts.identity.external_accounts."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.identity.external_accounts import LEEWAY_SECONDS
from gatewayd.accounts.identity.records import (
    ExternalIdentity,
    GroupRules,
    IdentityRules,
    RefusalCode,
    ResolvedAccount,
    ResolveOutcome,
    RoleRules,
)
from gatewayd.accounts.records import GroupChange, MembershipSource, NewGroup, Role, UserChange
from gatewayd.errors import GatewayError
from tests.fakes.accounts.services import Accounts

ANN = ExternalIdentity("okta", "https://okta.example", "s-1", "", "Ann@Example.org", True, "Ann")
OPEN = IdentityRules(sign_up=True)
MERGING = IdentityRules(merge_by_email=True)
ROLES = RoleRules(is_managed=True, allowed=("staff",), admins=("boss",))
GROUPS = GroupRules(is_managed=True)


@pytest.fixture
async def accounts() -> Accounts:
    made = Accounts()
    await made.runtime.set({"DEFAULT_USER_ROLE": "user"}, by="test")
    await made.add_user("chief", Role.ADMIN)
    return made


async def refused(accounts: Accounts, identity: ExternalIdentity, rules: IdentityRules) -> str | None:
    """Return the code of a refusal, which must change nothing."""
    before = repr(accounts.memory.tables)
    with pytest.raises(GatewayError) as caught:
        await accounts.external.resolve(identity, rules)
    assert repr(accounts.memory.tables) == before
    return caught.value.code


async def resolve(accounts: Accounts, identity: ExternalIdentity, **rules: Any) -> ResolvedAccount:
    return await accounts.external.resolve(identity, IdentityRules(**rules))


async def test_one_person_signs_up_once_and_keeps_the_account(accounts: Accounts) -> None:
    made = await accounts.external.resolve(ANN, OPEN)
    assert (made.outcome, made.user.email, made.user.role) == (
        ResolveOutcome.CREATED,
        "ann@example.org",
        Role.USER,
    )
    assert made.user.oauth == {"okta": {"sub": "s-1"}}
    moved = replace(ANN, email="other@example.org", email_verified=False, name="Other")
    again = await accounts.external.resolve(moved, IdentityRules())
    assert (again.outcome, again.user) == (ResolveOutcome.KNOWN, made.user)


async def test_two_first_sign_ins_at_once_make_one_account(accounts: Accounts) -> None:
    found = await asyncio.gather(*(accounts.external.resolve(ANN, OPEN) for _ in range(5)))
    assert len({each.user.id for each in found}) == 1
    assert await accounts.users.count() == 2


@pytest.mark.parametrize(
    ("changes", "rules", "code"),
    [
        ({}, IdentityRules(), RefusalCode.NO_ACCOUNT),
        ({"email_verified": False}, OPEN, RefusalCode.EMAIL_UNVERIFIED),
        ({"email": ""}, OPEN, RefusalCode.PROVIDER),
        ({"email": "a@b@example.org"}, OPEN, RefusalCode.PROVIDER),
        ({"email": "ann@example.org."}, OPEN, RefusalCode.PROVIDER),
        ({"subject": ""}, OPEN, RefusalCode.PROVIDER),
        ({"subject": "s" * 385}, OPEN, RefusalCode.PROVIDER),
        ({"subject": "s\x00"}, OPEN, RefusalCode.PROVIDER),
        ({"provisioning_id": "p" * 385}, OPEN, RefusalCode.PROVIDER),
        ({}, IdentityRules(sign_up=True, allowed_domains=("example.com",)), RefusalCode.DOMAIN),
        ({}, IdentityRules(sign_up=True, allowed_domains=()), RefusalCode.DOMAIN),
        (
            {"email": "ann@ехample.org"},  # noqa: RUF001 - look-alikes
            IdentityRules(sign_up=True, allowed_domains=("example.org",)),
            RefusalCode.DOMAIN,
        ),
        (
            {"email_verified": False},
            IdentityRules(sign_up=True, allowed_domains=("example.org",)),
            RefusalCode.EMAIL_UNVERIFIED,
        ),
        ({}, IdentityRules(sign_up=True, roles=ROLES), RefusalCode.ROLE_MISSING),
        ({"roles": ()}, IdentityRules(sign_up=True, roles=ROLES), RefusalCode.ROLE_MISSING),
        ({"roles": ("other",)}, IdentityRules(sign_up=True, roles=ROLES), RefusalCode.ROLE_MISSING),
        (
            {"roles": ("user",)},
            IdentityRules(sign_up=True, roles=RoleRules(True, (), ())),
            RefusalCode.ROLE_MISSING,
        ),
    ],
)
async def test_a_new_person_is_refused(
    accounts: Accounts, changes: dict[str, Any], rules: IdentityRules, code: RefusalCode
) -> None:
    assert await refused(accounts, replace(ANN, **changes), rules) == code


async def test_addresses_of_trusted_providers_and_persons_without_one(accounts: Accounts) -> None:
    unconfirmed = replace(ANN, email_verified=False)
    made = await resolve(
        accounts, unconfirmed, sign_up=True, trust_email=True, allowed_domains=("EXAMPLE.org",)
    )
    assert made.user.email == "ann@example.org"
    nobody = replace(ANN, subject="s-2", email="")
    found = await resolve(accounts, nobody, sign_up=True, without_email=True)
    assert found.user.email.endswith("@external.invalid")
    assert (await resolve(accounts, nobody)).user == found.user


async def test_the_first_account_needs_the_setting() -> None:
    fresh = Accounts()
    assert await refused(fresh, ANN, OPEN) == RefusalCode.SIGNUP_CLOSED
    fresh.external._may_create_first = True
    assert (await fresh.external.resolve(ANN, OPEN)).user.role is Role.ADMIN


async def test_a_pending_account_is_made_once_and_refused(accounts: Accounts) -> None:
    await accounts.runtime.set({"DEFAULT_USER_ROLE": "pending"}, by="test")
    with pytest.raises(GatewayError) as caught:
        await accounts.external.resolve(ANN, OPEN)
    assert caught.value.code == RefusalCode.PENDING
    assert await accounts.users.count() == 2
    staff = replace(ANN, roles=("staff",))
    assert await refused(accounts, staff, IdentityRules(roles=ROLES)) == RefusalCode.PENDING
    user = await accounts.users.resolve("ann@example.org")
    await accounts.users.change(user.id, UserChange(role=Role.USER), None)
    assert (await resolve(accounts, ANN)).user.id == user.id


async def test_a_deactivated_person_is_refused_everywhere(accounts: Accounts) -> None:
    user = await accounts.add_user("ann")
    await accounts.users.change(user.id, UserChange(active=False), None)
    assert await refused(accounts, ANN, MERGING) == RefusalCode.DEACTIVATED
    await accounts.users.change(user.id, UserChange(active=True), None)
    await accounts.external.resolve(ANN, MERGING)
    await accounts.users.change(user.id, UserChange(active=False), None)
    assert await refused(accounts, ANN, replace(MERGING, sign_up=True)) == RefusalCode.DEACTIVATED


@pytest.mark.parametrize(
    ("role", "changes", "rules", "code"),
    [
        (Role.USER, {}, OPEN, RefusalCode.EMAIL_TAKEN),
        (Role.USER, {"email_verified": False}, MERGING, RefusalCode.EMAIL_UNVERIFIED),
        (
            Role.USER,
            {"email_verified": False},
            replace(MERGING, trust_email=True),
            RefusalCode.EMAIL_UNVERIFIED,
        ),
        (Role.ADMIN, {}, MERGING, RefusalCode.EMAIL_TAKEN),
        (Role.PENDING, {}, MERGING, RefusalCode.PENDING),
    ],
)
async def test_an_address_does_not_join_accounts(
    accounts: Accounts, role: Role, changes: dict[str, Any], rules: IdentityRules, code: RefusalCode
) -> None:
    await accounts.add_user("ann", role)
    assert await refused(accounts, replace(ANN, **changes), rules) == code


async def test_a_verified_address_joins_once_when_it_may(accounts: Accounts) -> None:
    user = await accounts.add_user("ann")
    joined = await accounts.external.resolve(ANN, MERGING)
    assert (joined.user.id, joined.outcome) == (user.id, ResolveOutcome.LINKED)
    assert await refused(accounts, replace(ANN, subject="s-2"), MERGING) == RefusalCode.EMAIL_TAKEN
    other = replace(ANN, provider="entra", issuer="https://entra.example")
    assert (await accounts.external.resolve(other, MERGING)).user.id == user.id
    assert len(await accounts.identities_store.list(user.id)) == 2


async def test_the_same_subject_at_another_issuer_is_another_person(accounts: Accounts) -> None:
    first = await accounts.external.resolve(ANN, OPEN)
    other = replace(ANN, issuer="https://okta.example/", email="two@example.org")
    second = await accounts.external.resolve(other, OPEN)
    assert first.user.id != second.user.id
    assert (first.user.oauth, second.user.oauth) == ({"okta": {"sub": "s-1"}}, None)
    assert (await accounts.external.resolve(ANN, OPEN)).user.id == first.user.id
    assert (await accounts.external.resolve(other, OPEN)).user.id == second.user.id


@pytest.mark.parametrize("role", [Role.USER, Role.ADMIN])
async def test_a_subject_that_an_operator_entered_links(accounts: Accounts, role: Role) -> None:
    user = await accounts.add_user("bob", role, oauth={"okta": {"sub": "s-1"}})
    linked = await accounts.external.resolve(ANN, IdentityRules())
    assert (linked.user.id, linked.outcome) == (user.id, ResolveOutcome.LINKED)


@pytest.mark.parametrize("external_id", ["oid-1", "s-1"])
async def test_a_provisioned_account_is_found_by_its_external_id(
    accounts: Accounts, external_id: str
) -> None:
    user = await accounts.add_user("bob", scim={"okta": {"external_id": external_id}})
    linked = await accounts.external.resolve(replace(ANN, provisioning_id="oid-1"), IdentityRules())
    assert (linked.user.id, linked.outcome) == (user.id, ResolveOutcome.LINKED)
    assert linked.user.scim == {"okta": {"external_id": external_id}}
    stranger = replace(ANN, subject="s-9", provisioning_id=external_id, email="b@example.org")
    assert await refused(accounts, stranger, IdentityRules()) == RefusalCode.NO_ACCOUNT


async def test_another_provider_does_not_share_external_ids(accounts: Accounts) -> None:
    await accounts.add_user("bob", scim={"entra": {"external_id": "s-1"}})
    assert await refused(accounts, ANN, IdentityRules()) == RefusalCode.NO_ACCOUNT


async def test_a_provisioned_account_is_found_by_a_verified_address(accounts: Accounts) -> None:
    user = await accounts.add_user("ann", scim={"okta": {"external_id": "ann"}})
    unverified = replace(ANN, email_verified=False)
    assert await refused(accounts, unverified, IdentityRules()) == RefusalCode.EMAIL_UNVERIFIED
    assert (await resolve(accounts, ANN)).user.id == user.id


async def test_a_new_account_is_found_by_scim_by_its_provisioning_id(accounts: Accounts) -> None:
    made = await accounts.external.resolve(replace(ANN, provisioning_id="oid-1"), OPEN)
    assert made.user.scim == {"okta": {"external_id": "oid-1"}}


async def test_roles_of_the_provider(accounts: Accounts) -> None:
    rules = IdentityRules(sign_up=True, roles=ROLES)
    made = await accounts.external.resolve(replace(ANN, roles=("staff",)), rules)
    assert made.user.role is Role.USER
    raised = await accounts.external.resolve(replace(ANN, roles=("staff", "boss")), rules)
    assert (raised.user.role, raised.changes) == (Role.ADMIN, ("role user to admin",))
    kept = await accounts.external.resolve(replace(ANN, roles=("staff",)), rules)
    assert (kept.user.role, kept.changes) == (Role.ADMIN, ())
    assert await refused(accounts, ANN, rules) == RefusalCode.ROLE_MISSING
    lowering = replace(rules, roles=replace(ROLES, may_lower_admins=True))
    lowered = await accounts.external.resolve(replace(ANN, roles=("staff",)), lowering)
    assert (lowered.user.role, lowered.changes) == (Role.USER, ("role admin to user",))
    every = replace(rules, roles=replace(ROLES, allowed=("*",)))
    assert (await accounts.external.resolve(replace(ANN, roles=("x",)), every)).user.role is Role.USER


async def test_the_last_administrator_is_not_lowered() -> None:
    accounts = Accounts()
    await accounts.add_user("bob", Role.ADMIN, oauth={"okta": {"sub": "s-1"}})
    lowering = IdentityRules(roles=replace(ROLES, may_lower_admins=True))
    found = await accounts.external.resolve(replace(ANN, roles=("staff",)), lowering)
    assert found.user.role is Role.ADMIN


async def test_groups_of_the_provider_touch_their_own_memberships_only(accounts: Accounts) -> None:
    user = (await accounts.external.resolve(ANN, OPEN)).user
    team, ops, manual = [
        await accounts.groups.create(NewGroup(name)) for name in ("Team", "Operations", "Manual")
    ]
    await accounts.groups.change(ops.id, GroupChange(scim={"okta": {"external_id": "id-7"}}))
    await accounts.groups.add_members(manual.id, [user.id])
    rules = IdentityRules(groups=GROUPS)
    found = await accounts.external.resolve(replace(ANN, groups=("team", "id-7", "unknown")), rules)
    assert found.changes == ("+Team", "+Operations")
    assert (await accounts.external.resolve(ANN, rules)).changes == ()
    assert len(await accounts.groups.list(user.id)) == 3
    sources = await accounts.groups.list_sources(team.id, [user.id])
    assert sources == {user.id: [MembershipSource.OAUTH]}
    gone = await accounts.external.resolve(replace(ANN, groups=()), rules)
    assert gone.changes == ("-Operations", "-Team")
    assert [each.id for each in await accounts.groups.list(user.id)] == [manual.id]


async def test_groups_are_made_and_left_alone_by_the_rules(accounts: Accounts) -> None:
    user = (await accounts.external.resolve(ANN, OPEN)).user
    kept = await accounts.groups.create(NewGroup("Kept"))
    await accounts.groups.add_members(kept.id, [user.id], MembershipSource.OAUTH)
    rules = IdentityRules(groups=GroupRules(True, True, ("kept", "Secret"), "members"))
    names = ("New", "new", "secret", "kept", "", "bad\x00name", "n" * 300)
    found = await accounts.external.resolve(replace(ANN, groups=names), rules)
    assert found.changes == ("+New",)
    made = await accounts.groups.resolve("New")
    assert made.data == {"config": {"share": "members"}}
    assert {each.name for each in await accounts.groups.list(user.id)} == {"New", "Kept"}


async def test_a_person_links_an_identity_which_belongs_to_nobody(accounts: Accounts) -> None:
    bob, eve = await accounts.add_user("bob", Role.ADMIN), await accounts.add_user("eve")
    link = await accounts.external.link(bob.id, ANN)
    assert await accounts.external.link(bob.id, ANN) == link
    assert (await accounts.external.resolve(ANN, IdentityRules())).user.id == bob.id
    found = await accounts.external.find(ANN.issuer, ANN.subject)
    assert found is not None
    assert found.id == bob.id
    with pytest.raises(GatewayError) as caught:
        await accounts.external.link(eve.id, ANN)
    assert caught.value.code == RefusalCode.EMAIL_TAKEN
    with pytest.raises(GatewayError) as caught:
        await accounts.external.link(bob.id, replace(ANN, subject="s-2"))
    assert caught.value.code == "taken"


async def test_used_values_are_deleted_a_day_after_they_expired(accounts: Accounts) -> None:
    await accounts.identities_store.use_once("d", accounts.time)
    accounts.time += LEEWAY_SECONDS
    assert await accounts.external.prune() == 0
    accounts.time += 1
    assert await accounts.external.prune() == 1
