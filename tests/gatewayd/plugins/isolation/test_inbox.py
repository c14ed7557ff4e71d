import threading
from collections.abc import Iterator
from typing import Any

from gatewayd.plugins.isolation.inbox import read_messages


class Full:
    """The gateway, which reads nothing until it has been read."""

    def __init__(self) -> None:
        self.was_read = threading.Event()
        self.answered = threading.Event()

    def messages(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        yield {"do": "ping", "number": 1}, b""
        yield {"do": "answer", "number": 2}, b"x"
        self.was_read.set()

    def answer(self, message: dict[str, Any], header: dict[str, Any]) -> None:
        assert self.was_read.wait(10)
        assert (message["number"], header) == (1, {})
        self.answered.set()


def test_reading_does_not_wait_for_writing() -> None:
    parent: Any = Full()
    taken: list[Any] = []
    read_messages(parent, lambda *message: taken.append((message, parent.was_read.is_set())))
    assert taken == [(({"do": "answer", "number": 2}, b"x"), False)]
    assert parent.answered.wait(10)
