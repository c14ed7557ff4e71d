"""gatewayctl group."""

import json

from gatewayd.accounts.records import MembershipSource
from tests.fakes.daemons.control_socket import Control, Ctl


async def test_create_show_list(ctl: Ctl) -> None:
    made = await ctl("group", "create", "api-users", "--description", "keys", "--allow", "features.api_keys")
    assert made.out == "created group api-users\n"
    shown = json.loads((await ctl("group", "show", "API-users", "-o", "json")).out)
    assert list(shown) == [
        "id",
        "name",
        "description",
        "permissions",
        "member_count",
        "created_at",
        "updated_at",
        "external_ids",
        "sources",
    ]
    assert shown["permissions"] == {"features": {"api_keys": True}}
    assert (await ctl("group", "show", shown["id"], "-o", "name")).out == "api-users\n"
    assert "features.api_keys" in (await ctl("group", "list")).out
    assert (await ctl("group", "create", "API-Users")).code == 6
    assert (await ctl("group", "show", "none")).code == 5


async def test_names_with_slashes_and_spaces_are_addressed(ctl: Ctl) -> None:
    assert (await ctl("group", "create", "team a/b ?")).code == 0
    assert (await ctl("group", "show", "team a/b ?", "-o", "name")).out == "team a/b ?\n"


async def test_unknown_permissions_are_refused(ctl: Ctl) -> None:
    unknown = await ctl("group", "create", "g", "--allow", "features.api_key")
    assert unknown.code == 1
    assert "did you mean 'api_keys'" in unknown.err
    assert (await ctl("group", "create", "g", "--allow", "nonsense")).code == 2


async def test_ensure_and_change(ctl: Ctl) -> None:
    outcomes = [
        json.loads((await ctl("group", "ensure", "g", *extra, "-o", "json")).out)["outcome"]
        for extra in ([], [], ["--allow", "chat.delete"], ["--allow", "chat.delete"])
    ]
    assert outcomes == ["created", "unchanged", "changed", "unchanged"]
    assert (await ctl("group", "change", "g", "--name", "h")).out == "changed group h\n"
    assert (await ctl("group", "change", "h", "--name", "h")).out == "unchanged group h\n"
    assert (await ctl("group", "change", "h")).code == 2


async def test_members(ctl: Ctl, control: Control) -> None:
    for name in ("ann", "bob"):
        await control.accounts.add_user(name)
    await ctl("group", "create", "g")
    added = await ctl("group", "add-member", "g", "ann@example.org", "bob@example.org")
    assert added.out == "changed 2 members of group g\n"
    assert (await ctl("group", "members", "g", "-o", "name")).out == "ann@example.org\nbob@example.org\n"
    again = await ctl("group", "add-member", "g", "ann@example.org", "-o", "json")
    assert json.loads(again.out)["outcome"] == "unchanged"
    assert (await ctl("group", "list", "--user", "ann@example.org", "-o", "name")).out == "g\n"
    dry = await ctl("group", "remove-member", "g", "bob@example.org", "--dry-run")
    assert dry.out == "dry run: changed 1 members of group g\n"
    assert (await ctl("group", "remove-member", "g", "bob@example.org")).code == 0
    assert (await ctl("group", "members", "g", "-o", "name")).out == "ann@example.org\n"
    unknown = await ctl("group", "add-member", "g", "zoe@example.org")
    assert (unknown.code, unknown.out) == (5, "")


async def test_remove(ctl: Ctl) -> None:
    await ctl("group", "create", "g")
    assert (await ctl("group", "remove", "g")).code == 2
    assert (await ctl("group", "remove", "g", "--yes")).out == "removed group g\n"
    assert (await ctl("group", "remove", "g", "--yes")).code == 5


async def test_members_have_sources(ctl: Ctl, control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    await ctl("group", "create", "g")
    group = await control.accounts.groups.resolve("g")
    await control.accounts.groups.add_members(group.id, [ann.id, bob.id], MembershipSource.SCIM)
    await ctl("group", "add-member", "g", ann.email)
    listed = json.loads((await ctl("group", "members", "g", "-o", "json")).out)
    assert [(each["email"], each["sources"]) for each in listed] == [
        (ann.email, ["manual", "scim"]),
        (bob.email, ["scim"]),
    ]
    assert "manual, scim" in (await ctl("group", "members", "g")).out
    shown = json.loads((await ctl("group", "show", "g", "-o", "json")).out)
    assert (shown["member_count"], shown["sources"]) == (2, {"manual": 1, "scim": 2})
    assert "manual=1, scim=2" in (await ctl("group", "show", "g")).out


async def test_one_source_is_taken_away(ctl: Ctl, control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    await ctl("group", "create", "g")
    group = await control.accounts.groups.resolve("g")
    await control.accounts.groups.add_members(group.id, [ann.id], MembershipSource.SCIM)
    await ctl("group", "add-member", "g", ann.email)
    manual = await ctl("group", "remove-member", "g", ann.email, "--source", "manual")
    assert (manual.out, manual.err) == ("changed 1 members of group g\n", "")
    again = await ctl("group", "remove-member", "g", ann.email, "--source", "manual", "-o", "json")
    assert json.loads(again.out)["outcome"] == "unchanged"
    rest = await ctl("group", "remove-member", "g", ann.email)
    assert rest.out == "changed 1 members of group g\n"
    assert rest.err == "An identity provider had added 1 of them and may do so again.\n"
    assert (await ctl("group", "members", "g", "-o", "name")).out == ""
    assert (await ctl("group", "remove-member", "g", ann.email, "--source", "x")).code == 2


async def test_link_and_unlink(ctl: Ctl) -> None:
    await ctl("group", "create", "g")
    await ctl("group", "create", "h")
    assert (await ctl("group", "link", "g", "--external-id", "e1")).out == "changed group g\n"
    assert "okta=e1" in (await ctl("group", "show", "g")).out
    assert "okta=e1" in (await ctl("group", "list")).out
    taken = await ctl("group", "link", "h", "--external-id", "e1")
    assert taken.code == 6
    assert "belongs to group 'g'" in taken.err
    assert (await ctl("group", "link", "h")).code == 2
    dry = await ctl("group", "unlink", "g", "--dry-run")
    assert dry.out == "dry run: changed group g\n"
    assert (await ctl("group", "unlink", "g")).out == "changed group g\n"
    assert (await ctl("group", "unlink", "g")).out == "unchanged group g\n"
    assert (await ctl("group", "unlink", "none")).code == 5
