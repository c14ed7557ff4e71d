"""Ids, secrets, digests and clocks; tests replace them."""

import hashlib
import os
import secrets
import time
from collections.abc import Callable
from typing import Final

NewId = Callable[[], str]
"""Returns a new random id."""

Clock = Callable[[], int]
"""Returns the current time as whole seconds since the epoch (UTC)."""


RANDOM_IDS: Final = 256
"""Number of ids whose random digits are read at once."""

_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""First digit of the part of a UUID that tells its variant, by a random digit."""

_random: Final[list[str]] = []
"""Random digits for further ids."""

# Both processes would use them else.
os.register_at_fork(after_in_child=_random.clear)


def now() -> int:
    """Return the current time in whole epoch seconds, the unit of every stored timestamp."""
    return int(time.time())  # noqa: TID251 - this is the clock's home


def since_boot() -> float:
    """Return the seconds since the machine started, suspension included; this clock cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_clock(clock: Clock = now, elapsed: Callable[[], float] = since_boot) -> Clock:
    """Return a clock for durations: it starts at the present time and ignores changes of the wall clock."""
    start = clock() - elapsed()
    return lambda: int(start + elapsed())


def retention_clock(clock: Clock = now, elapsed: Callable[[], float] = since_boot) -> Clock:
    """Return a clock for deletion by age: `clock`, but not ahead of the time that has really passed."""
    durations = steady_clock(clock, elapsed)
    return lambda: min(clock(), durations())


def timestamp() -> float:
    """Return the current time in epoch seconds with fractions, for lines of logs."""
    return time.time()  # noqa: TID251 - this is the clock's home


def now_us() -> int:
    """Return the current time in whole microseconds since the epoch, to distinguish changes."""
    return time.time_ns() // 1000  # noqa: TID251 - this is the clock's home


def new_id() -> str:
    """Return a UUIDv7 as text, the form of every id that the gateway generates.

    Ids sort in the order of their creation, within one second too (RFC 9562, 6.2, method 3: the time to a
    quarter of a microsecond), so that `created_at, id` is the order of creation.
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)  # noqa: TID251 - this is the clock's home
    clock = f"{milliseconds:012x}"
    random = _random_digits()
    return (
        f"{clock[:8]}-{clock[8:]}-7{rest * 4096 // 1_000_000:03x}"
        f"-{_VARIANTS[random[0]]}{random[1:4]}-{random[4:]}"
    )


def _random_digits() -> str:
    """Return 16 random hexadecimal digits; the system is asked once for many ids."""
    try:
        return _random.pop()
    except IndexError:
        digits = os.urandom(8 * RANDOM_IDS).hex()
        _random.extend(digits[place : place + 16] for place in range(16, len(digits), 16))
        return digits[:16]


def new_secret(size: int = 32) -> str:
    """Return `size` random bytes as lower-case hexadecimal text."""
    return secrets.token_hex(size)


def digest(secret: str) -> str:
    """Return the SHA-256 of a whole secret as hexadecimal text, the only form in which secrets are stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
