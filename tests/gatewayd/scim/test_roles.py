from typing import Any

import pytest

from gatewayd.accounts.records import ProviderRole, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim import values
from gatewayd.scim.patch import emails as patch_emails
from gatewayd.scim.roles import MAX_ROLE_CHARACTERS, read_roles, render_role
from tests.fakes.accounts.provisioning import Provisioning, adding, removing, replacing

ADMIN = {"value": "admin", "display": "Administrator", "type": "direct", "primary": True}
STAFF = {"value": "staff", "primary": False}


@pytest.fixture
def scim() -> Provisioning:
    return Provisioning()


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, ()),
        ([], ()),
        ("admin", (ProviderRole("admin"),)),
        (["admin", {"value": "Admin", "display": "A"}, ""], (ProviderRole("Admin", "A"),)),
        (
            [ADMIN, STAFF],
            (ProviderRole("admin", "Administrator", "direct", primary=True), ProviderRole("staff")),
        ),
        ([{"display": "A"}, {"display": "B"}], (ProviderRole(display="A"), ProviderRole(display="B"))),
        ([{"primary": "True"}, {"value": None, "type": " "}], ()),
        ({"VALUE": " x ", "other": 5, "primary": "False"}, (ProviderRole("x"),)),
        (['{"id": "1", "value": "x"}'], (ProviderRole('{"id": "1", "value": "x"}'),)),
    ],
)
def test_roles_are_read(sent: Any, kept: Any) -> None:
    assert read_roles(sent) == kept
    assert read_roles([render_role(role) for role in kept]) == kept


@pytest.mark.parametrize(
    "sent",
    [
        5,
        [5],
        [{"value": 5}],
        [{"value": "a\nb"}],
        ["r" * (MAX_ROLE_CHARACTERS + 1)],
        [{"value": "x", "primary": 1}],
    ],
)
def test_what_is_no_role_is_refused(sent: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        read_roles(sent)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "invalidValue")
    assert (caught.value.param or "").startswith("roles")


async def test_roles_come_back_as_they_were_sent_and_give_no_right(scim: Provisioning) -> None:
    user_id = await scim.add_user(roles=[ADMIN, STAFF])
    shown = await scim.shown_user(user_id)
    assert shown["roles"] == [ADMIN, STAFF]
    assert (await scim.account(user_id)).role is Role.USER
    before = await scim.account(user_id)
    await scim.users.replace(user_id, shown)
    assert await scim.account(user_id) == before
    await scim.users.replace(user_id, {"userName": "ann@example.org"})
    assert "roles" not in await scim.shown_user(user_id)


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        (adding("roles", [{"value": "third"}]), [ADMIN, STAFF, {"value": "third", "primary": False}]),
        (
            adding("roles", [{"value": "third", "primary": True}]),
            [{**ADMIN, "primary": False}, STAFF, {"value": "third", "primary": True}],
        ),
        (adding("roles", None), [ADMIN, STAFF]),
        (replacing("roles", "third"), [{"value": "third", "primary": False}]),
        (replacing("roles", []), None),
        (removing("roles"), None),
        (removing("roles", value=[{"value": "ADMIN"}]), [STAFF]),
        (removing("roles", value=["staff"]), [ADMIN]),
        (removing('roles[value eq "staff"]'), [ADMIN]),
        (removing('roles[value eq "nobody"]'), [ADMIN, STAFF]),
        (removing('roles[value eq "admin"].type'), [{k: v for k, v in ADMIN.items() if k != "type"}, STAFF]),
        (removing('roles[value eq "staff"].value'), [ADMIN]),
        (removing('roles[value eq "nobody"].display'), [ADMIN, STAFF]),
        (replacing('roles[primary eq "True"].value', "boss"), [{**ADMIN, "value": "boss"}, STAFF]),
        (
            replacing('roles[value eq "staff"].primary', "True"),
            [{**ADMIN, "primary": False}, {**STAFF, "primary": True}],
        ),
        (replacing('roles[value eq "staff"]', {"display": "S"}), [ADMIN, {**STAFF, "display": "S"}]),
        (replacing("roles.display", "Boss"), [{**ADMIN, "display": "Boss"}, STAFF]),
        (
            adding('roles[type eq "x"].value', "new"),
            [ADMIN, STAFF, {"value": "new", "type": "x", "primary": False}],
        ),
        (replacing("title", "x"), [ADMIN, STAFF]),
    ],
)
async def test_roles_are_changed(scim: Provisioning, operation: Any, left: Any) -> None:
    user_id = await scim.add_user(roles=[ADMIN, STAFF])
    assert (await scim.patch_user(user_id, operation)).get("roles") == left
    assert (await scim.shown_user(user_id)).get("roles") == left


async def test_entra_makes_its_single_role(scim: Provisioning) -> None:
    user_id = await scim.add_user()
    made = await scim.patch_user(user_id, adding('roles[primary eq "True"].value', "User"))
    assert made["roles"] == [{"value": "User", "primary": True}]


async def test_a_role_of_which_nothing_is_said_has_no_target(scim: Provisioning) -> None:
    user_id = await scim.add_user()
    with pytest.raises(GatewayError) as caught:
        await scim.patch_user(user_id, replacing('roles[value co "a"].display', "x"))
    assert caught.value.code == "noTarget"


async def test_a_part_that_a_role_lacks_is_no_text(scim: Provisioning) -> None:
    user_id = await scim.add_user(roles=[STAFF])
    shown = await scim.patch_user(user_id, removing("roles", value=[{"type": "None"}, {"display": "none"}]))
    assert shown["roles"] == [STAFF]


async def test_a_list_of_roles_to_remove_is_folded_once(
    scim: Provisioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = [{"value": f"folded {number}"} for number in range(100)]
    user_id = await scim.add_user(roles=roles)
    folded: list[str] = []
    for module in (values, patch_emails):
        monkeypatch.setattr(module, "casefold_nfc", lambda text: folded.append(text) or text.lower())
    gone = [{"value": f"GONE {number}"} for number in range(100)]
    assert len((await scim.patch_user(user_id, removing("roles", value=gone)))["roles"]) == 100
    assert len(folded) <= 300
