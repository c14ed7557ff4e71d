import pytest

from tests.fakes.accounts import Accounts


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()
