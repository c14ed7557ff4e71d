import pytest

from gatewayd.scim.filters.syntax import Name

URN = "urn:ietf:params:scim:schemas:core:2.0:User"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (Name("userName"), "userName"),
        (Name("name", "givenName"), "name.givenName"),
        (Name("userName", urn=URN), f"{URN}:userName"),
        (Name("name", "givenName", URN), f"{URN}:name.givenName"),
    ],
)
def test_a_name_reads_as_it_was_written(name: Name, text: str) -> None:
    assert str(name) == text
