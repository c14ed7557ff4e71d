"""One gateway on each database for all tests of provisioning."""

from collections.abc import Iterator

import pytest

from tests.clients.scim.gateway import Gateway, opened_gateway

DATABASES = ("sqlite", "postgresql")


def settings_of(database: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the settings of a gateway on an empty database of a kind."""
    if database == "sqlite":
        return {}
    return {"DATABASE_URL": request.getfixturevalue("postgres").migrated_database()}


@pytest.fixture(scope="session", params=DATABASES)
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    settings = settings_of(request.param, request)
    with opened_gateway(tmp_path_factory.mktemp("g"), **settings) as made:
        yield made
