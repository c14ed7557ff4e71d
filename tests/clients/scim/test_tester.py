"""The public checker of SCIM servers finds nothing, but for the deletion that is a deactivation here."""

import httpx2
import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

from tests.clients.scim.gateway import TOKEN, Gateway
from tests.clients.scim.player import BASE

FAILURES = (Status.ERROR, Status.CRITICAL)
DEACTIVATION = ("object_deletion", "User")
"""The checker wants 404 for a deleted user; here a deleted user stays visible and is not active."""


@pytest.mark.timeout(300)
def test_the_checker_finds_nothing_else(gateway: Gateway) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=gateway.url + BASE, headers=headers, timeout=30) as http:
        results = check_server(SyncSCIMClient(http))
    failed = [result for result in results if result.status in FAILURES]
    assert [(result.title, result.resource_type) for result in failed] == [DEACTIVATION], failed
    assert "still exists after deletion" in str(failed[0].reason)
    assert {result.resource_type for result in results} >= {"User", "Group"}
    assert sum(result.status is Status.SUCCESS for result in results) > 50
