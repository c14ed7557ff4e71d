"""gatewayctl group."""

import json

from tests.fakes.control import Control, Ctl


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
