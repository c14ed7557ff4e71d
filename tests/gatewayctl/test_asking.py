"""References in paths."""

import pytest

from gatewayctl.asking import segment
from gatewayctl.failures import CommandError


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("ann@example.org", "ann@example.org"),
        ("a/../?x=1#%2F", "a%2F..%2F%3Fx%3D1%23%252F"),
        ("ä b", "%C3%A4%20b"),
    ],
)
def test_a_reference_stays_one_segment(ref: str, expected: str) -> None:
    assert segment(ref) == expected


def test_a_reference_must_be_text() -> None:
    with pytest.raises(CommandError, match="not UTF-8 text") as caught:
        segment("\udcff")
    assert caught.value.exit_code == 2
