"""The public checker of SCIM servers finds nothing, but for the deletion that is a deactivation here."""

import sys
from typing import Any

import httpx2
import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server, filling

from tests.clients.scim.gateway import TOKEN, Gateway
from tests.clients.scim.player import BASE

FAILURES = (Status.ERROR, Status.CRITICAL)
DEACTIVATION = ("object_deletion", "User")
"""The checker wants 404 for a deleted user; here a deleted user stays visible and is not active."""


@pytest.fixture
def addressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make user names that are e-mail addresses, as they must be here: no schema can tell the checker so."""
    generate = filling.generate_random_value

    def generate_address(context: Any, path: Any, **limits: Any) -> Any:
        value = generate(context, path, **limits)
        is_user_name = isinstance(value, str) and str(path).endswith("userName")
        return f"{value}@checker.example.org" if is_user_name else value

    for name, module in list(sys.modules.items()):
        if name.startswith("scim2_tester") and hasattr(module, generate.__name__):
            monkeypatch.setattr(module, generate.__name__, generate_address)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("addressed")
def test_the_checker_finds_nothing_else(gateway: Gateway) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=gateway.url + BASE, headers=headers, timeout=30) as http:
        results = check_server(SyncSCIMClient(http))
    failed = [result for result in results if result.status in FAILURES]
    assert [(result.title, result.resource_type) for result in failed] == [DEACTIVATION], failed
    assert "still exists after deletion" in str(failed[0].reason)
    assert {result.resource_type for result in results} >= {"User", "Group"}
    assert sum(result.status is Status.SUCCESS for result in results) > 40
