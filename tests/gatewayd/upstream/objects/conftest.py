"""Servers of object stores, one of each kind for all tests of a module."""

from collections.abc import Iterator

import pytest

from tests.conftest import missing
from tests.fakes.storage.object_servers import PROGRAMS, ObjectServer, find_server, object_server


@pytest.fixture(scope="module", params=["moto", "nanio"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectServer]:
    """Run each of the servers."""
    if find_server(request.param) is None:
        missing(
            PROGRAMS[request.param],
            "install moto[s3], flask, flask-cors and nanio, and name their directory of programs",
        )
    with object_server(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made
