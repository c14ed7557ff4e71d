from typing import Any

import pytest

from gatewayd.accounts.records import Group, ProviderIdentity
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.attributes import find_attribute
from gatewayd.scim.external_ids import (
    changed_store,
    check_draft,
    check_provider,
    check_steps,
    external_id,
    new_store,
)
from gatewayd.scim.input_records import GroupDraft, PatchVerb, UserDraft
from gatewayd.scim.patch.steps import PatchStep
from gatewayd.scim.records import ResourceType

KEPT = {"okta": {"external_id": "7"}, "entra": {"external_id": "8"}}


def draft(value: str | None, *, sent: bool = True) -> GroupDraft:
    return GroupDraft("Staff", value, sent)


@pytest.mark.parametrize(
    ("store", "provider", "found"),
    [
        (KEPT, "okta", "7"),
        (KEPT, "entra", "8"),
        (KEPT, "other", None),
        ({"": {"external_id": "9"}}, "", None),
        (None, "okta", None),
        ({"okta": {"external_id": None}}, "okta", None),
        ({"okta": "7"}, "okta", None),
        ("okta", "okta", None),
        ([{"okta": {"external_id": "7"}}], "okta", None),
    ],
)
def test_the_identifier_of_a_provider(store: Any, provider: str, found: str | None) -> None:
    assert external_id(Group("g", "g", scim=store), provider) == found


@pytest.mark.parametrize(
    ("store", "wanted", "provider", "changed"),
    [
        (KEPT, draft("9"), "okta", {"okta": {"external_id": "9"}, "entra": {"external_id": "8"}}),
        (KEPT, draft("7"), "okta", None),
        (KEPT, draft(None), "okta", {"entra": {"external_id": "8"}}),
        (KEPT, draft(None, sent=False), "okta", None),
        (KEPT, draft(None), "", None),
        (None, draft("1"), "okta", {"okta": {"external_id": "1"}}),
        (None, draft(None), "okta", None),
        ({"okta": {"external_id": "7"}}, draft(None), "okta", {}),
        ({"okta": "7", "entra": "8"}, draft("9"), "okta", {"okta": {"external_id": "9"}, "entra": "8"}),
        ("okta", draft("9"), "okta", {"okta": {"external_id": "9"}}),
        (["okta"], draft("9"), "okta", {"okta": {"external_id": "9"}}),
    ],
)
def test_what_becomes_of_a_store(store: Any, wanted: GroupDraft, provider: str, changed: Any) -> None:
    assert changed_store(Group("g", "g", scim=store), wanted, provider) == changed


def test_a_new_store() -> None:
    assert new_store(UserDraft(ProviderIdentity(), external_id="1", has_external_id=True), "okta") == {
        "okta": {"external_id": "1"}
    }
    assert new_store(draft(None), "okta") == {}


def test_nothing_is_kept_for_nobody() -> None:
    check_provider("okta")
    check_draft(draft("7"), "okta")
    check_draft(draft(None), "")
    for attempt in (lambda: check_provider(""), lambda: check_draft(draft("7"), "")):
        with pytest.raises(
            GatewayError, match=r"^cannot store externalId: SCIM_AUTH_PROVIDER is not set$"
        ) as caught:
            attempt()
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("verb", "name", "value", "refused"),
    [
        (PatchVerb.ADD, "externalId", "7", True),
        (PatchVerb.REPLACE, "externalId", "7", True),
        (PatchVerb.REMOVE, "externalId", None, True),
        (PatchVerb.REPLACE, "externalId", None, False),
        (PatchVerb.REPLACE, "externalId", " ", False),
        (PatchVerb.REPLACE, "displayName", "7", False),
    ],
)
def test_steps_that_need_a_provider(verb: PatchVerb, name: str, value: Any, refused: bool) -> None:
    place = find_attribute(ResourceType.USER, name)
    assert place is not None
    check_steps([PatchStep(verb, place, value)], "okta")
    if not refused:
        check_steps([PatchStep(verb, place, value)], "")
        return
    with pytest.raises(GatewayError) as caught:
        check_steps([PatchStep(verb, place, value)], "")
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
