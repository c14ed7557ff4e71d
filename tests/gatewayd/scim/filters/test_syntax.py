import pytest

from gatewayd.scim.filters.syntax import AttributeName

URN = "urn:ietf:params:scim:schemas:core:2.0:User"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (AttributeName("userName"), "userName"),
        (AttributeName("name", "givenName"), "name.givenName"),
        (AttributeName("userName", urn=URN), f"{URN}:userName"),
        (AttributeName("name", "givenName", URN), f"{URN}:name.givenName"),
    ],
)
def test_a_name_reads_as_it_was_written(name: AttributeName, text: str) -> None:
    assert str(name) == text
