"""Records of declarative state: paths, located errors, and what a plan shows of secrets."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.state.records import MASK, FieldChange, join_path, located, refused


def test_paths_are_dotted_keys_of_toml() -> None:
    assert join_path("users", "ann@example.com", "role") == 'users."ann@example.com".role'
    assert join_path("models", 'a"b\\c') == 'models."a\\"b\\\\c"'
    assert join_path("settings", "ENABLE_SIGNUP") == "settings.ENABLE_SIGNUP"


def test_an_error_is_located_once_and_names_the_field() -> None:
    with pytest.raises(GatewayError) as caught, located("users.outer"), located("users.u", {"name": "name"}):
        raise invalid("cannot accept name: it is empty", param="name")
    assert caught.value.message == "cannot apply users.u.name: cannot accept name: it is empty"
    assert caught.value.param == "users.u.name"


def test_a_missing_reference_is_a_wrong_document() -> None:
    with pytest.raises(GatewayError) as caught, located("groups.g.members"):
        raise not_found("user", "u")
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    with pytest.raises(GatewayError) as conflict, located("models.m"):
        raise GatewayError(ErrorKind.CONFLICT, "cannot do it")
    assert conflict.value.kind is ErrorKind.CONFLICT
    assert refused("models.m", "no").message == "cannot apply models.m: no"


def test_secrets_are_masked() -> None:
    assert FieldChange("key", "", "new", is_secret=True).shown == (None, MASK)
    assert FieldChange("key", "old", "new", is_secret=True).shown == (MASK, MASK)
    assert FieldChange("name", "old", "new").shown == ("old", "new")
