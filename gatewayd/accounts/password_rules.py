"""Rules for new passwords (ASVS 5.0, 6.2; NIST SP 800-63B, 3.1.1.2)."""

import re
from collections.abc import Iterable
from importlib.resources import files
from itertools import pairwise
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError, invalid

MIN_CHARACTERS: Final = 8
MAX_BYTES: Final = 4096
MIN_WORD_CHARACTERS: Final = 3
WEAK_CODE: Final = "weak_password"
PRODUCT_WORDS: Final = ("gatewayd", "gateway", "admin", "administrator", "password", "chatgpt", "openai")

_SEPARATOR: Final = re.compile(r"[\W_]+")


def check_password(password: str, param: str = "password") -> None:
    """Raise invalid_request if a password is empty, over 4096 bytes, or not valid Unicode."""
    try:
        size = len(password.encode())
    except UnicodeEncodeError:
        raise invalid(f"cannot accept {param}: it is not valid text", param=param) from None
    if size == 0:
        raise invalid(f"cannot accept {param}: it is empty", param=param)
    if size > MAX_BYTES:
        raise invalid(f"cannot accept {param}: it is longer than {MAX_BYTES} bytes", param=param)


def common_passwords() -> frozenset[str]:
    """Return the 10,000 most common passwords with at least eight characters, in lower case."""
    text = files("gatewayd").joinpath("accounts", "data", "common-passwords.txt").read_text("ascii")
    return frozenset(text.split())


class PasswordRules:
    """Refuses short and guessable passwords; no character classes are required.

    `words` are further words of the context beside `PRODUCT_WORDS`: the name of the gateway.
    """

    def __init__(
        self,
        min_characters: int = MIN_CHARACTERS,
        words: Iterable[str] = (),
        common: frozenset[str] = frozenset(),
    ) -> None:
        self._min = min_characters
        self._words = frozenset(_forms([*PRODUCT_WORDS, *words]))
        self._common = common

    def check(self, password: str, about: Iterable[str], param: str = "password") -> None:
        """Raise invalid_request (code `weak_password`) for a weak password.

        `about` are the e-mail address and the names of the owner. A password is weak if it has fewer
        characters than the minimum, is one of the most common, is one repeated character or one sequence
        (`abcdefgh`), or is a word of the context with or without digits and signs around it.
        """
        check_password(password, param)
        if len(password) < self._min:
            raise _weak(param, f"it has {len(password)} characters, at least {self._min} are needed")
        plain = password.casefold()
        if plain in self._common:
            raise _weak(param, "it is one of the most common passwords")
        if _is_row(plain):
            raise _weak(param, "it is one repeated character or a sequence of characters")
        if {plain, _word_of(plain)} & (self._words | _forms(about)):
            raise _weak(param, "it is an address or a name that belongs to the account or the gateway")


def _word_of(text: str) -> str:
    """Return a text from its first letter to its last."""
    places = [place for place, character in enumerate(text) if character.isalpha()]
    return text[places[0] : places[-1] + 1] if places else ""


def _forms(texts: Iterable[str]) -> set[str]:
    """Return the texts, the two sides of addresses and the words, if they have at least three characters."""
    whole = [text.casefold() for text in texts]
    plain = [*whole, *(side for text in whole for side in text.split("@"))]
    words = [word for text in plain for word in _SEPARATOR.split(text)]
    joined = [_SEPARATOR.sub("", text) for text in plain]
    return {text for text in (*plain, *words, *joined) if len(text) >= MIN_WORD_CHARACTERS}


def _is_row(text: str) -> bool:
    """Tell whether each character follows the one before it by the same step of -1, 0 or 1."""
    steps = {ord(second) - ord(first) for first, second in pairwise(text)}
    return len(steps) <= 1 and steps <= {-1, 0, 1}


def _weak(param: str, reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.INVALID_REQUEST, f"cannot accept {param}: {reason}", param=param, code=WEAK_CODE
    )
