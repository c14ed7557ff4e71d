import pytest

from gatewayd.chats.records import MAX_CONTENT_CHARACTERS, MAX_ITEMS, MAX_ITEMS_BYTES
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.message_limits import check_content, check_items


def test_what_has_room_is_accepted() -> None:
    check_content("é" * MAX_CONTENT_CHARACTERS)
    check_items("files", ["1"] * MAX_ITEMS)
    check_items("files", ["é"], count=MAX_ITEMS - 1, size=MAX_ITEMS_BYTES - 2)


@pytest.mark.parametrize(("count", "size"), [(MAX_ITEMS, 0), (0, MAX_ITEMS_BYTES - 1)])
def test_what_has_none_is_refused_by_name(count: int, size: int) -> None:
    with pytest.raises(GatewayError) as caught:
        check_items("files", ["é"], count=count, size=size)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.TOO_LARGE, "files")
    with pytest.raises(GatewayError) as caught:
        check_content("x" * (MAX_CONTENT_CHARACTERS + 1))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.TOO_LARGE, "content")
