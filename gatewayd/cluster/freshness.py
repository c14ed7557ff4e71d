"""The clock of freshness, and the freshness of a process that is alone."""

import time
from typing import Final

TRUST_SECONDS: Final = 0.9
"""Time after a question to the database for which the memory of a node is trusted: less than the second
after which a revocation holds everywhere, for the time that a request needs to be admitted."""


def boottime() -> float:
    """Return the seconds since the start of the machine; the clock goes on while the machine is suspended.

    No change of the time of day moves it.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class AlwaysFresh:
    """The freshness of the only process of a database, which makes every change itself."""

    def is_fresh(self) -> bool:
        """Return True."""
        return True

    async def renew(self) -> None:
        """Do nothing."""


ALWAYS_FRESH: Final = AlwaysFresh()
