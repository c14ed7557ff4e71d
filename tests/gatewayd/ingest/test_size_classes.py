import pytest

from gatewayd.ingest.size_classes import SizeClass, size_class_of


@pytest.mark.parametrize(
    ("size", "passages", "expected"),
    [
        (34, 0, SizeClass.SMALL),
        (32_768, 32, SizeClass.SMALL),
        (32_769, 0, SizeClass.MIDDLE),
        (1_048_576, 1024, SizeClass.MIDDLE),
        (34, 1025, SizeClass.LARGE),
        (1_048_577, 0, SizeClass.LARGE),
    ],
)
def test_a_file_is_as_large_as_its_bytes_or_its_passages_say(
    size: int, passages: int, expected: SizeClass
) -> None:
    assert size_class_of(size, passages) is expected
