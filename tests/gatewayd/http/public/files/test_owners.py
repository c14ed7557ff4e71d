"""Tests for gatewayd.http.public.files.owners."""

from gatewayd.http.public.files.owners import OwnerFinder
from tests.fakes.accounts import Accounts


async def test_owners() -> None:
    accounts = Accounts()
    ann = await accounts.add_user("ann")
    shown = await OwnerFinder(accounts.users).shown([ann.id, "gone", ann.id])
    assert shown == {
        ann.id: {"id": ann.id, "name": "ann", "role": "user", "email": "ann@example.org"},
        "gone": None,
    }
