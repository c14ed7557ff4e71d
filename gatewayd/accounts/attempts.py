"""Attempt counters in sliding windows, by name and by network, in bounded memory."""

import ipaddress
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from gatewayd import ids

MAX_TRACKED: Final = 20_000
WIDE_PREFIX: Final = 48
"""Prefix length of the largest usual assignment of IPv6 to one site (RFC 6177)."""


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """Maximum number of tries in a period of seconds."""

    tries: int
    seconds: int


class AttemptCounter:
    """Counts tries by name in a sliding window, for at most `MAX_TRACKED` names.

    `kind` says what it counts, for counters that have the same names on all nodes.
    """

    def __init__(self, limit: AttemptLimit, clock: ids.Clock, kind: str = "") -> None:
        self.limit = limit
        self.kind = kind
        self._clock = clock
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def wait(self, name: str) -> int:
        """Return the seconds until the next try is allowed, 0 if it is allowed now."""
        times = self._times.get(name)
        if times is None:
            return 0
        now = self._clock()
        while times and times[0] <= now - self.limit.seconds:
            times.popleft()
        if len(times) < self.limit.tries:
            return 0
        return max(1, times[0] + self.limit.seconds - now)

    def add(self, name: str) -> None:
        """Count a try."""
        self._times.setdefault(name, deque()).append(self._clock())
        self._times.move_to_end(name)
        if len(self._times) > MAX_TRACKED:
            self._times.popitem(last=False)

    def uncount_latest(self, name: str) -> None:
        """Uncount the latest try: it succeeded, or no password was checked."""
        times = self._times.get(name)
        if times:
            times.pop()
        if not times:
            self._times.pop(name, None)

    def forget(self, name: str) -> None:
        """Uncount every try."""
        self._times.pop(name, None)


def network_of(peer: str) -> str:
    """Return the network that counts as one client: the IPv4 address, or the /64 of an IPv6 address."""
    address = _parse(peer)
    if isinstance(address, ipaddress.IPv6Address):
        # One site has at least a whole /64.
        return str(ipaddress.ip_network((address, 64), strict=False))
    return peer[:64] if address is None else str(address)


def wide_network_of(peer: str) -> str | None:
    """Return the /48 of an IPv6 address, whose holder has 65,536 networks; None for everything else."""
    address = _parse(peer)
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    return str(ipaddress.ip_network((address, WIDE_PREFIX), strict=False))


def _parse(peer: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
