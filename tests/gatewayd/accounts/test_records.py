import pytest

from gatewayd.accounts.records import Actor, CredentialKind, Role, User


def actor(role: Role, *, active: bool = True) -> Actor:
    user = User("u1", "ann@example.org", "Ann", role, active=active)
    return Actor(user, CredentialKind.KEY, (), {"chat": {"edit": True, "share": False}})


@pytest.mark.parametrize(
    ("role", "active", "is_admin", "is_verified", "shown"),
    [
        (Role.ADMIN, True, True, True, Role.ADMIN),
        (Role.USER, True, False, True, Role.USER),
        (Role.PENDING, True, False, False, Role.PENDING),
        (Role.ADMIN, False, False, False, Role.PENDING),
    ],
)
def test_what_a_role_means(role: Role, active: bool, is_admin: bool, is_verified: bool, shown: Role) -> None:
    who = actor(role, active=active)
    assert (who.is_admin, who.is_verified, who.user.shown_role) == (is_admin, is_verified, shown)


def test_an_actor_may_what_the_tree_says() -> None:
    who = actor(Role.USER)
    assert who.may("chat", "edit")
    assert not who.may("chat", "share")
    assert not who.may("nothing", "such")
