"""Links to what a provider calls a user or a group."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gatewayd.accounts.records import NewGroup, UserChange
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.links import EXTERNAL_ID_FIELD, SUBJECT_FIELD, LinkChange, ProviderLinks, read_links
from tests.fakes.accounts.directory import MemoryDirectory
from tests.fakes.accounts.services import Accounts


@dataclass
class Scene:
    accounts: Accounts = field(default_factory=Accounts)

    def links(self, provider: str = "okta") -> ProviderLinks:
        accounts = self.accounts
        directory = MemoryDirectory(accounts.memory)
        identities = accounts.identities_store
        return ProviderLinks(
            accounts.users, accounts.groups, directory, identities, accounts.commits, provider
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_user_is_linked_and_what_others_call_it_stays(scene: Scene) -> None:
    ann = await scene.accounts.add_user("ann")
    stores = {"scim": {"entra": {"external_id": "e"}}, "oauth": {"okta": {"extra": 1}}}
    await scene.accounts.users.change(ann.id, UserChange(**stores), None)
    user = await scene.links().link_user(ann.id, LinkChange(external_id=" 00u1 ", subject="s"))
    assert user.scim == {"entra": {"external_id": "e"}, "okta": {"external_id": "00u1"}}
    assert user.oauth == {"okta": {"extra": 1, "sub": "s"}}
    assert read_links(user.scim, EXTERNAL_ID_FIELD) == {"entra": "e", "okta": "00u1"}
    assert read_links(user.oauth, SUBJECT_FIELD) == {"okta": "s"}
    other = await scene.links().link_user(ann.id, LinkChange(external_id="n", provider="new"))
    assert read_links(other.scim, EXTERNAL_ID_FIELD) == {"entra": "e", "okta": "00u1", "new": "n"}


async def test_an_empty_text_takes_a_link_away(scene: Scene) -> None:
    ann = await scene.accounts.add_user("ann")
    links = scene.links()
    await links.link_user(ann.id, LinkChange(external_id="1", subject="s"))
    user = await links.link_user(ann.id, LinkChange(external_id=""))
    assert (user.scim, read_links(user.oauth, SUBJECT_FIELD)) == (None, {"okta": "s"})
    user = await links.link_user(ann.id, LinkChange(subject=""))
    assert user.oauth is None
    again = await links.link_user(ann.id, LinkChange(external_id="", subject=""))
    assert again == user


@pytest.mark.parametrize(
    ("wish", "what"),
    [
        (LinkChange(external_id="1"), "external id '1' of 'okta'"),
        (LinkChange(subject="s"), "OAuth subject 's' of 'okta'"),
    ],
)
async def test_a_conflict_names_the_owner(scene: Scene, wish: LinkChange, what: str) -> None:
    ann, bob = await scene.accounts.add_user("ann"), await scene.accounts.add_user("bob")
    links = scene.links()
    await links.link_user(ann.id, LinkChange(external_id="1", subject="s"))
    assert await links.link_user(ann.id, wish) == await scene.accounts.users.get(ann.id)
    with pytest.raises(GatewayError) as caught:
        await links.link_user(bob.id, wish)
    assert caught.value.message == f"cannot link: the {what} belongs to user 'ann@example.org'"
    assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, "taken")
    # Another provider may use the same words.
    await links.link_user(bob.id, LinkChange(wish.external_id, wish.subject, "entra"))


@pytest.mark.parametrize("wish", [LinkChange(external_id=" "), LinkChange(subject="\t")])
async def test_a_blank_text_takes_nothing_away(scene: Scene, wish: LinkChange) -> None:
    ann = await scene.accounts.add_user("ann")
    linked = await scene.links().link_user(ann.id, LinkChange(external_id="1", subject="s"))
    with pytest.raises(GatewayError) as caught:
        await scene.links().link_user(ann.id, wish)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert await scene.accounts.users.get(ann.id) == linked


async def test_groups_are_linked_too(scene: Scene) -> None:
    links, groups = scene.links(), scene.accounts.groups
    one, two = await groups.create(NewGroup("one")), await groups.create(NewGroup("two"))
    assert (await links.link_group(one.id, LinkChange(external_id="g"))).scim == {
        "okta": {"external_id": "g"}
    }
    with pytest.raises(GatewayError, match="belongs to group 'one'"):
        await links.link_group(two.id, LinkChange(external_id="g"))
    with pytest.raises(GatewayError, match="groups have none"):
        await links.link_group(two.id, LinkChange(subject="s"))
    assert (await links.link_group(one.id, LinkChange(external_id=""))).scim is None


async def test_without_a_provider_one_must_be_named(scene: Scene) -> None:
    ann = await scene.accounts.add_user("ann")
    with pytest.raises(GatewayError) as caught:
        await scene.links("").link_user(ann.id, LinkChange(external_id="1"))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.NOT_CONFIGURED, "provider")
    user = await scene.links("").link_user(ann.id, LinkChange(external_id="1", provider="okta"))
    assert read_links(user.scim, EXTERNAL_ID_FIELD) == {"okta": "1"}


@pytest.mark.parametrize(
    ("wish", "param"),
    [
        (LinkChange(), "external_id"),
        (LinkChange(external_id="x" * 513), "external_id"),
        (LinkChange(external_id="a\x00"), "external_id"),
        (LinkChange(subject="a\nb"), "oauth_subject"),
        (LinkChange(external_id="1", provider=" "), "provider"),
    ],
)
async def test_bad_wishes(scene: Scene, wish: LinkChange, param: str) -> None:
    ann = await scene.accounts.add_user("ann")
    with pytest.raises(GatewayError) as caught:
        await scene.links().link_user(ann.id, wish)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)


async def test_unknown_users_and_groups(scene: Scene) -> None:
    for work in (scene.links().link_user, scene.links().link_group):
        with pytest.raises(GatewayError) as caught:
            await work("none", LinkChange(external_id="1"))
        assert caught.value.kind is ErrorKind.NOT_FOUND


def test_odd_stores_are_read_as_nothing() -> None:
    assert read_links(None, EXTERNAL_ID_FIELD) == {}
    assert read_links(
        {
            "a": 1,
            "b": {},
            "c": {EXTERNAL_ID_FIELD: 5},
            "d": {EXTERNAL_ID_FIELD: ""},
            "e": {EXTERNAL_ID_FIELD: "x"},
        },
        EXTERNAL_ID_FIELD,
    ) == {"e": "x"}


@pytest.mark.parametrize("odd", ["okta", ["okta"], {"okta": "1"}, {"okta": ["1"]}])
async def test_a_store_of_another_shape_is_no_link_and_can_be_replaced(scene: Scene, odd: Any) -> None:
    ann = await scene.accounts.add_user("ann")
    scene.accounts.memory.tables.users[ann.id] = replace(ann, scim=odd, oauth=odd)
    assert (read_links(odd, EXTERNAL_ID_FIELD), read_links(odd, SUBJECT_FIELD)) == ({}, {})
    user = await scene.links().link_user(ann.id, LinkChange(external_id="1", subject="s"))
    assert (user.scim, user.oauth) == ({"okta": {"external_id": "1"}}, {"okta": {"sub": "s"}})
