"""Tests for gatewayd.http.public.accounts.serializers."""

import pytest

from gatewayd.accounts.records import Group, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.accounts.serializers import (
    is_active,
    parse_user_listing,
    render_user_info,
    render_whole_user,
)

USER_KEYS = {
    "id",
    "email",
    "username",
    "role",
    "active",
    "name",
    "profile_image_url",
    "profile_banner_image_url",
    "bio",
    "gender",
    "date_of_birth",
    "timezone",
    "presence_state",
    "status_emoji",
    "status_message",
    "status_expires_at",
    "info",
    "settings",
    "oauth",
    "scim",
    "last_active_at",
    "updated_at",
    "created_at",
}


def test_a_user_has_every_key() -> None:
    user = User("u1", "ann@x", "Ann", Role.ADMIN, profile={"bio": "b", "secret": "s"}, active=False)
    shown = render_whole_user(user)
    assert set(shown) == USER_KEYS
    assert (shown["role"], shown["active"], shown["bio"], shown["gender"]) == ("pending", False, "b", None)


def test_the_short_form() -> None:
    user = User("u1", "ann@x", "Ann", Role.USER, last_active_at=1000)
    shown = render_user_info(user, 1100, [Group("g1", "staff")])
    assert shown == {
        "id": "u1",
        "name": "Ann",
        "email": "ann@x",
        "role": "user",
        "bio": None,
        "groups": [{"id": "g1", "name": "staff"}],
        "is_active": True,
        "status_emoji": None,
        "status_message": None,
        "status_expires_at": None,
    }


def test_activity_fades() -> None:
    user = User("u1", "ann@x", "Ann", Role.USER, last_active_at=1000)
    assert is_active(user, 1179)
    assert not is_active(user, 1180)
    # The clock was set back.
    assert is_active(user, 900)
    assert not is_active(user, 1000 - 3600)


def test_pages() -> None:
    wanted = {"query": "a", "order_by": "name", "descending": True, "offset": 60, "limit": 30}
    assert parse_user_listing({"query": "a", "order_by": "name", "direction": "desc", "page": "3"}) == wanted
    assert parse_user_listing({})["offset"] == 0


@pytest.mark.parametrize(
    "query",
    [{"page": bad} for bad in ("0", "-1", "x", "", "1.5", "99999999", "9" * 5000, "٣")]
    + [{"direction": "up"}],
)
def test_bad_pages(query: dict[str, str]) -> None:
    with pytest.raises(GatewayError) as caught:
        parse_user_listing(query)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, next(iter(query)))
