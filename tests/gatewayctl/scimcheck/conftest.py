"""A SCIM service that answers by the book, and what a check knows when it starts."""

import pytest

from gatewayctl.scimcheck.records import Memory
from tests.fakes.accounts.scim_service import Service


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def memory() -> Memory:
    return {"random": "r", "name": "n", "fingerprint": "f00", "is_open": "no"}
