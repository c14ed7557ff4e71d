"""Heads of requests that come again on their connection: what follows from them alone is found once."""

from typing import Any, Final

from gatewayd import ids

LENGTH: Final = b"content-length"


class KnownHead:
    """The head of an answered request, of any length of the body, with its credential, "" if none counts.

    It holds no right: who the credential belongs to, and what they may do, is found for each request.
    """

    __slots__ = ("_after", "_before", "_line", "_name", "_place", "_size", "credential", "digest")

    def __init__(self, message: Any, place: int | None, credential: str) -> None:
        raw = message.raw_headers
        self._line = (message.method, message.path, message.version, False, False)
        self._place = place
        self._before, self._after, self._name = raw, (), b""
        if place is not None:
            self._before, self._after, self._name = raw[:place], raw[place + 1 :], raw[place][0]
        self._size = len(raw)
        self.credential = credential
        self.digest = ids.digest(credential)

    def is_of(self, message: Any) -> bool:
        """Return whether a request has this head, but for the length of its body."""
        raw, place = getattr(message, "raw_headers", ()), self._place
        if place is None:
            is_same = raw == self._before
        else:
            is_same = (
                len(raw) == self._size
                and raw[place][0] == self._name
                and raw[:place] == self._before
                and raw[place + 1 :] == self._after
            )
        return is_same and (
            (message.method, message.path, message.version, message.should_close, message.upgrade)
            == self._line
        )


def remember_head(message: Any, credential: str) -> KnownHead:
    """Return the head of a request whose connection stays open."""
    for place, (name, _) in enumerate(message.raw_headers):
        if name.lower() == LENGTH:
            return KnownHead(message, place, credential)
    return KnownHead(message, None, credential)
