import pytest

from gatewayd.accounts.records import ProviderIdentity
from gatewayd.scim.input_records import GroupDraft, MemberChange, PatchOperation, PatchVerb, UserDraft


def test_a_draft_says_nothing_by_itself() -> None:
    user = UserDraft(ProviderIdentity(user_name="ada@example.org"))
    assert (user.active, user.external_id, user.has_external_id) == (None, None, False)
    assert GroupDraft("Engineers").members is None


def test_an_operation_tells_a_null_from_no_value() -> None:
    assert PatchOperation(PatchVerb.REMOVE, "emails") != PatchOperation(
        PatchVerb.REMOVE, "emails", None, has_value=True
    )


@pytest.mark.parametrize("text", ["add", "remove", "replace"])
def test_verbs_are_those_of_the_wire(text: str) -> None:
    assert PatchVerb(text) == text


def test_a_change_of_members_is_of_nobody_by_itself() -> None:
    assert MemberChange(PatchVerb.REPLACE) == MemberChange(PatchVerb.REPLACE, (), None)
