import pytest

from tests.fakes.accounts.services import Accounts


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()
