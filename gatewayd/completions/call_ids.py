"""Ids of tool calls in the form that a maker takes, by a stable hash; pure."""

import hashlib
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text


class CallIdForm(StrEnum):
    """The ids of tool calls that a family takes."""

    ANY = "any"
    # At most 40 characters.
    SHORT = "short"
    # At most 64 letters, digits, underscores and hyphens.
    WORD = "word"
    # Nine letters and digits.
    NINE = "nine"


_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_FORMS: Final = {
    CallIdForm.SHORT: re.compile(r".{1,40}", re.DOTALL),
    CallIdForm.WORD: re.compile(r"[A-Za-z0-9_-]{1,64}"),
    CallIdForm.NINE: re.compile(r"[A-Za-z0-9]{9}"),
}


def call_ids_in(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the calls in the history of a chat request.

    Some engines number the calls of each answer anew. Programs that index calls by their id, such as Claude
    Code, drop the second one.
    """
    return frozenset(
        as_text(as_mapping(call).get("id"))
        for message in as_sequence(body.get("messages"))
        for call in as_sequence(as_mapping(message).get("tool_calls"))
    )


class CallIdMap:
    """Maps the ids of one history; each call gets an id of its own, the same one whenever it is sent.

    `changed` has the given id of each id that was made.
    """

    def __init__(self, form: CallIdForm) -> None:
        self._form = _FORMS.get(form)
        self._is_nine = form is CallIdForm.NINE
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}
        self.changed: dict[str, str] = {}

    def sent(self, given: str) -> str:
        """Return the id of one more call: the given one if the maker takes it and no call had it before."""
        if given and given not in self._used and (self._form is None or self._form.fullmatch(given)):
            self._used.add(given)
            return given
        number = self._repeats.get(given, 0)
        made = self._hashed(given, number)
        while made in self._used:
            number += 1
            made = self._hashed(given, number)
        self._repeats[given] = number + 1
        self._used.add(made)
        self.changed[made] = given
        return made

    def _hashed(self, given: str, number: int) -> str:
        digest = hashlib.sha256(f"{number}:{given}".encode(errors="replace")).digest()
        if not self._is_nine:
            return f"call_{digest.hex()[:24]}"
        value = int.from_bytes(digest[:16])
        made = []
        for _ in range(9):
            value, digit = divmod(value, len(_LETTERS))
            made.append(_LETTERS[digit])
        return "".join(made)
