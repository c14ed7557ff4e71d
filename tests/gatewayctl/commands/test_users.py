"""gatewayctl user."""

import json
from pathlib import Path

import pytest

from gatewayctl.wire.base import Outcome
from gatewayd.accounts.identity.records import ExternalIdentity
from gatewayd.accounts.records import NewGroup, Role, SessionOrigin, SignInMethod
from gatewayd.errors import GatewayError
from tests.fakes.daemons.control_socket import Control, Ctl, Terminal


@pytest.fixture
async def ada(control: Control) -> str:
    """Return the address of an administrator, and have another beside."""
    await control.accounts.add_user("root", role=Role.ADMIN)
    user = await control.accounts.add_user("ada")
    return user.email


async def test_list_as_table_json_jsonl_and_names(ctl: Ctl, ada: str) -> None:
    table = await ctl("user", "list")
    assert table.code == 0
    assert table.out.splitlines()[0].split() == [
        "EMAIL",
        "NAME",
        "ROLE",
        "ACTIVE",
        "GROUPS",
        "LAST",
        "ACTIVE",
        "ID",
    ]
    assert ada in table.out
    listed = json.loads((await ctl("user", "list", "-o", "json")).out)
    assert [user["email"] for user in listed] == ["root@example.org", ada]
    lines = (await ctl("-o", "jsonl", "user", "list")).out.splitlines()
    assert [json.loads(line) for line in lines] == listed
    assert (await ctl("user", "list", "-o", "name")).out == f"root@example.org\n{ada}\n"


async def test_list_with_query_and_limit(ctl: Ctl, ada: str) -> None:
    assert (await ctl("user", "list", "--query", "ada", "-o", "name")).out == f"{ada}\n"
    assert (await ctl("user", "list", "--limit", "1", "-o", "name")).out == "root@example.org\n"
    assert (await ctl("user", "list", "--limit", "0")).code == 2


async def test_json_fields_and_their_order_are_stable(ctl: Ctl, ada: str) -> None:
    shown = json.loads((await ctl("user", "show", ada, "-o", "json")).out)
    assert list(shown) == [
        "id",
        "email",
        "name",
        "role",
        "active",
        "username",
        "groups",
        "last_active_at",
        "created_at",
        "updated_at",
        "user_name",
        "external_ids",
        "subjects",
        "storage_bytes",
        "storage_left_bytes",
    ]
    assert shown["created_at"].startswith("2023-11-14T")
    assert shown["created_at"].endswith("Z")


async def test_show_unknown_user_leaves_stdout_empty(ctl: Ctl, ada: str) -> None:
    missing = await ctl("user", "show", "nobody@example.org")
    assert (missing.code, missing.out) == (5, "")
    assert missing.err == "gatewayctl: cannot find user 'nobody@example.org'\n"
    told = json.loads((await ctl("user", "show", "nobody@example.org", "-o", "json")).err)
    assert told["error"]["kind"] == "not_found"
    assert told["error"]["request_id"]


async def test_create_with_a_password_from_stdin(ctl: Ctl, control: Control) -> None:
    made = await ctl(
        "user",
        "create",
        "--email",
        "Eve@Example.org",
        "--role",
        "admin",
        "--password-file",
        "-",
        stdin="correct horse\n",
    )
    assert (made.code, made.out) == (0, "created user eve@example.org\n")
    user = await control.accounts.users.resolve("eve@example.org")
    assert await control.accounts.users_store.find_password_hash(user.id) == "hash:correct horse"


async def test_create_with_a_made_up_password_prints_it_once(ctl: Ctl, control: Control) -> None:
    made = await ctl("user", "create", "--email", "a@example.org", "--generate")
    first, second = made.out.splitlines()
    assert first == "created user a@example.org"
    user = await control.accounts.users.resolve("a@example.org")
    stored = await control.accounts.users_store.find_password_hash(user.id)
    assert stored == f"hash:{second.removeprefix('password ')}"
    bare = await ctl("user", "create", "--email", "b@example.org", "--generate", "-o", "name")
    user = await control.accounts.users.resolve("b@example.org")
    assert await control.accounts.users_store.find_password_hash(user.id) == f"hash:{bare.out.strip()}"


async def test_create_twice_is_a_conflict(ctl: Ctl, ada: str) -> None:
    again = await ctl("user", "create", "--email", ada)
    assert (again.code, again.out) == (6, "")


async def test_create_refuses_a_bad_address_and_both_kinds_of_password(ctl: Ctl, tmp_path: Path) -> None:
    bad = await ctl("user", "create", "--email", "nonsense", "-o", "json")
    assert bad.code == 1
    assert json.loads(bad.err)["error"]["param"] == "email"
    both = await ctl(
        "user", "create", "--email", "a@b.c", "--generate", "--password-file", str(tmp_path / "x")
    )
    assert both.code == 2


async def test_dry_run_checks_and_keeps_nothing(ctl: Ctl, control: Control, ada: str) -> None:
    made = await ctl("user", "create", "--email", "new@example.org", "--generate", "--dry-run", "-o", "json")
    shown = json.loads(made.out)
    assert (shown["dry_run"], shown["outcome"], shown["password"]) == (True, "created", None)
    assert (await ctl("user", "show", "new@example.org")).code == 5
    assert (await ctl("user", "create", "--email", ada, "--dry-run")).code == 6
    removed = await ctl("user", "remove", ada, "--dry-run")
    assert removed.out == f"dry run: removed user {ada}\n"
    assert (await ctl("user", "show", ada)).code == 0


async def test_ensure_tells_created_changed_unchanged(ctl: Ctl, control: Control, ada: str) -> None:
    words = []
    for extra in (["--name", "New"], ["--name", "New"], ["--role", "admin"], []):
        words.append((await ctl("user", "ensure", "--email", "new@example.org", *extra, "-o", "json")).out)
    assert [json.loads(word)["outcome"] for word in words] == [
        Outcome.CREATED,
        Outcome.UNCHANGED,
        Outcome.CHANGED,
        Outcome.UNCHANGED,
    ]
    user = await control.accounts.users.resolve("new@example.org")
    assert (user.name, user.role) == ("New", "admin")


async def test_change_says_what_it_did(ctl: Ctl, ada: str) -> None:
    assert (await ctl("user", "change", ada, "--name", "Ada L")).out == f"changed user {ada}\n"
    assert (await ctl("user", "change", ada, "--name", "Ada L")).out == f"unchanged user {ada}\n"
    assert (await ctl("user", "change", ada)).code == 2
    assert (await ctl("user", "change", ada, "--role", "king")).code == 2


async def test_remove_asks_on_a_terminal_and_needs_yes_without(ctl: Ctl, ada: str) -> None:
    assert (await ctl("user", "remove", ada)).code == 2
    refused = await ctl("user", "remove", ada, stdin=Terminal("n\n"))
    assert (refused.code, refused.out) == (1, "")
    assert (await ctl("user", "show", ada)).code == 0
    assert (await ctl("user", "remove", ada, stdin=Terminal("y\n"))).code == 0
    assert (await ctl("user", "remove", ada, "--yes")).code == 5


async def test_the_last_administrator_stays(ctl: Ctl, ada: str) -> None:
    assert (await ctl("user", "remove", "root@example.org", "--yes")).code == 6
    assert (await ctl("user", "deactivate", "root@example.org")).code == 6


async def test_password_and_activation(ctl: Ctl, control: Control, ada: str) -> None:
    given = await ctl("user", "password", ada, "--password-file", "-", stdin="other horse")
    assert given.out == f"changed user {ada}\n"
    made = await ctl("user", "password", ada, "--generate", "-o", "name")
    user = await control.accounts.users.resolve(ada)
    assert await control.accounts.users_store.find_password_hash(user.id) == f"hash:{made.out.strip()}"
    assert (await ctl("user", "deactivate", ada)).out == f"changed user {ada}\n"
    assert json.loads((await ctl("user", "show", ada, "-o", "json")).out)["active"] is False
    assert (await ctl("user", "activate", ada)).code == 0
    assert (await ctl("user", "password", ada, "--password-file", "/nowhere/at/all")).code == 2


async def test_link_and_unlink(ctl: Ctl, ada: str) -> None:
    linked = await ctl("user", "link", ada, "--external-id", "00u1", "--oauth-subject", "s")
    assert (linked.code, linked.out) == (0, f"changed user {ada}\n")
    shown = json.loads((await ctl("user", "show", ada, "-o", "json")).out)
    assert (shown["user_name"], shown["external_ids"], shown["subjects"]) == (
        ada,
        {"okta": "00u1"},
        {"okta": "s"},
    )
    table = (await ctl("user", "show", ada)).out
    assert "okta=00u1" in table
    assert "okta=s" in table
    again = await ctl("user", "link", ada, "--external-id", "00u1", "-o", "json")
    assert json.loads(again.out)["outcome"] == "unchanged"
    taken = await ctl("user", "link", "root@example.org", "--external-id", "00u1")
    assert (taken.code, taken.out) == (6, "")
    assert f"belongs to user '{ada}'" in taken.err
    one = json.loads((await ctl("user", "unlink", ada, "--oauth-subject", "-o", "json")).out)
    assert (one["external_ids"], one["subjects"]) == ({"okta": "00u1"}, {})
    assert (await ctl("user", "unlink", ada)).out == f"changed user {ada}\n"
    assert (await ctl("user", "unlink", ada)).out == f"unchanged user {ada}\n"


async def test_link_to_another_provider_and_dry_run(ctl: Ctl, ada: str) -> None:
    dry = await ctl("user", "link", ada, "--external-id", "x", "--provider", "entra", "--dry-run")
    assert dry.out == f"dry run: changed user {ada}\n"
    assert json.loads((await ctl("user", "show", ada, "-o", "json")).out)["external_ids"] == {}
    await ctl("user", "link", ada, "--external-id", "x", "--provider", "entra")
    assert (await ctl("user", "unlink", ada)).out == f"unchanged user {ada}\n"
    gone = await ctl("user", "unlink", ada, "--provider", "entra", "-o", "json")
    assert json.loads(gone.out)["external_ids"] == {}


async def test_link_needs_something_to_attach(ctl: Ctl, ada: str) -> None:
    assert (await ctl("user", "link", ada)).code == 2
    assert (await ctl("user", "link", "nobody@example.org", "--external-id", "x")).code == 5
    assert (await ctl("user", "unlink", "nobody@example.org")).code == 5


async def test_identities_and_their_removal(ctl: Ctl, control: Control, ada: str) -> None:
    accounts = control.accounts
    user = await accounts.users.resolve(ada)
    person = ExternalIdentity("oidc", "https://login.example.org", "s-1", "oid-1", "ada@example.org")
    await accounts.external.link(user.id, person)
    token = await accounts.session(user, SessionOrigin(SignInMethod.OAUTH, "oidc"))
    listed = await ctl("user", "identities", ada)
    assert listed.out.split()[:3] == ["PROVIDER", "EMAIL", "SUBJECT"]
    assert "https://login.example.org" in listed.out
    assert (await ctl("user", "remove-identity", ada, "oidc", "--dry-run")).code == 0
    assert (await ctl("user", "identities", ada, "-o", "name")).out.split() == ["oidc"]
    assert (await ctl("user", "remove-identity", ada, "oidc")).code == 0
    assert (await ctl("user", "identities", ada, "-o", "name")).out == ""
    assert (await ctl("user", "remove-identity", ada, "oidc")).code == 5
    with pytest.raises(GatewayError):
        await accounts.authenticator.authenticate(token, "GET", "/api/models")
    after = await accounts.users.get(user.id)
    assert (after.oauth, after.scim) == (None, None)


async def test_sessions_and_their_end(ctl: Ctl, control: Control, ada: str) -> None:
    user = await control.accounts.users.resolve(ada)
    token = await control.accounts.session(user)
    listed = await ctl("user", "sessions", ada)
    assert listed.out.split()[:4] == ["ID", "METHOD", "PROVIDER", "ADDRESS"]
    assert "password" in listed.out
    assert (await ctl("user", "end-sessions", ada, "--dry-run")).code == 0
    assert len((await ctl("user", "sessions", ada, "-o", "name")).out.split()) == 1
    ended = await ctl("user", "end-sessions", ada)
    assert ended.code == 0
    with pytest.raises(GatewayError):
        await control.accounts.authenticator.authenticate(token, "GET", "/api/models")
    assert (await ctl("user", "sessions", ada, "-o", "name")).out == ""


async def test_an_invitation_prints_its_link_once(ctl: Ctl, control: Control) -> None:
    await control.accounts.groups.ensure(NewGroup("research"))
    made = await ctl(
        "user", "invite", "bea@example.org", "--role", "pending", "--group", "research", "--expires", "2d"
    )
    assert made.code == 0
    assert "https://ai.example.org/auth#invitation=" in made.out
    assert "not shown again" in made.err
    (link,) = await control.accounts.invitations.list()
    assert (link.expires_at - link.created_at, link.role, len(link.group_ids)) == (172_800, Role.PENDING, 1)
    assert "invitation=" not in (await ctl("user", "invite", "c@example.org", "--dry-run")).out
    assert (await ctl("user", "invite", "bea@example.org", "--group", "gone")).code == 5


async def test_a_sign_in_link_is_printed_alone(ctl: Ctl, control: Control, ada: str) -> None:
    made = await ctl("user", "sign-in-link", ada, "--expires", "5m", "-o", "name")
    token = made.out.strip().removeprefix("https://ai.example.org/auth#link=")
    assert (await control.accounts.sign_in_links.use(token)).email == ada
    assert (await ctl("user", "sign-in-link", "nobody@example.org")).code == 5
