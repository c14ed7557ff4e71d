from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.fakes.directory.slapd import Slapd, find_slapd, running_slapd


@pytest.fixture(scope="session")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """Return a running directory, one for all tests."""
    program = find_slapd()
    if program is None or not Path("/usr/lib/ldap").is_dir():
        missing("slapd", "install the Debian packages slapd and ldap-utils")
    assert program is not None
    with running_slapd(tmp_path_factory.mktemp("slapd"), program) as server:
        yield server
