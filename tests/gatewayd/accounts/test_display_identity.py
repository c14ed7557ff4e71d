from dataclasses import replace

import pytest

from gatewayd.accounts.display_identity import address_of, display_identity, with_email, with_name
from gatewayd.accounts.records import Email, ProviderIdentity
from tests.fakes.accounts.records import user

SENT = ProviderIdentity(
    "Ada@x", "Ada L", None, "Ada", "L", (Email("ada@x", "home"), Email("a@x", primary=True))
)


@pytest.mark.parametrize("identity", [SENT, ProviderIdentity("Ada@x")])
def test_what_a_provider_said_is_shown_and_nothing_made_up(identity: ProviderIdentity) -> None:
    assert display_identity(user("u1", name="Other", identity=identity)) == identity


@pytest.mark.parametrize(
    ("name", "given", "family"),
    [
        ("Ada", "Ada", "Ada"),
        ("Ada Lovelace", "Ada", "Lovelace"),
        ("Ada  King Lovelace ", "Ada", "King Lovelace"),
        ("Ada ", "Ada", "Ada"),
    ],
)
def test_an_account_made_by_hand_shows_its_name_and_address(name: str, given: str, family: str) -> None:
    emails = (Email("u1@example.org", "work", primary=True),)
    expected = ProviderIdentity("u1@example.org", name, name, given, family, emails)
    assert display_identity(user("u1", name=name)) == expected


def test_another_address_replaces_the_primary_one() -> None:
    expected = (Email("ada@x", "home"), Email("new@x", primary=True))
    assert with_email(SENT, "new@x") == replace(SENT, emails=expected)
    assert with_email(ProviderIdentity(), "new@x") == ProviderIdentity()
    assert with_email(ProviderIdentity("Ada@x"), "new@x") == ProviderIdentity(
        "Ada@x", emails=(Email("new@x", primary=True),)
    )
    without = ProviderIdentity("Ada@x", emails=(Email("ada@x"), Email("a@x", "home")))
    assert with_email(without, "new@x").emails == (Email("new@x"), Email("a@x", "home"))


@pytest.mark.parametrize(
    ("identity", "address"),
    [(SENT, "a@x"), (replace(SENT, emails=SENT.emails[:1]), "ada@x"), (ProviderIdentity("Ada@x"), "Ada@x")],
)
def test_the_address_is_the_primary_one_else_the_first_else_the_user_name(
    identity: ProviderIdentity, address: str
) -> None:
    assert address_of(identity) == address


def test_another_name_replaces_the_display_name() -> None:
    assert with_name(SENT, "New") == replace(SENT, display_name="New")
    assert with_name(ProviderIdentity("Ada@x"), "New") == ProviderIdentity("Ada@x", display_name="New")
    assert with_name(ProviderIdentity(), "New") == ProviderIdentity()
