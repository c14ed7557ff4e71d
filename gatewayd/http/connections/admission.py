"""Counting of requests for the bounds of their account and their client address."""

from collections.abc import Callable
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from aiohttp import web

from gatewayd.accounts.attempts import network_of
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.connections.slots import SeatedConnection
from gatewayd.http.context import client_address

LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))

IDENTITY_PROVIDER: Final = "an identity provider"
"""Account name for the SCIM token in the counters. No account id has spaces."""


class RequestAdmission:
    """Counter of requests. Requests from an address in `proxies` count for no address."""

    def __init__(self, proxies: tuple[IPv4Network | IPv6Network, ...]) -> None:
        self._has_proxies = bool(proxies)
        self._counted = lru_cache(maxsize=4096)(partial(counted_address, proxies=proxies))

    def count(self, request: web.Request, account: str, use: RequestUse) -> None:
        """Count a request for an account ("" for none) until its answer; raises as
        `DescriptorBudget.hold`."""
        connection = request.protocol
        if isinstance(connection, SeatedConnection):
            network = connection.network
            if network is None or self._has_proxies:
                network = self._network(request, connection)
            connection.hold(account, network, use)

    def count_work(self, request: web.Request, account: str, use: RequestUse) -> Callable[[], None]:
        """Count a request whose work goes on when its client leaves; raises as `DescriptorBudget.hold` does.

        The caller calls the returned function when the work is done.
        """
        connection = request.protocol
        if isinstance(connection, SeatedConnection):
            return connection.hold_work(account, self._network(request, connection), use)
        return _nothing

    def _network(self, request: web.Request, connection: SeatedConnection) -> str:
        """Return the network of a request. Without proxies it is computed once for each connection."""
        network = connection.network = self._counted(client_address(request))
        return network


def take_place(request: web.Request) -> None:
    """Move a connection from a spare place to a regular one before authentication; raises unavailable.

    Otherwise requests that wait for the database would occupy the places of health checks.
    """
    connection = request.protocol
    if isinstance(connection, SeatedConnection) and connection.is_spare:
        connection.hold("", "", RequestUse.REQUEST)


def count(request: web.Request, use: RequestUse) -> None:
    """Count a request without account and address; raises as `DescriptorBudget.hold` does."""
    connection = request.protocol
    if isinstance(connection, SeatedConnection):
        connection.hold("", "", use)


def count_work(request: web.Request, use: RequestUse) -> Callable[[], None]:
    """Count a request without account and address, as `RequestAdmission.count_work` does."""
    connection = request.protocol
    return connection.hold_work("", "", use) if isinstance(connection, SeatedConnection) else _nothing


def _nothing() -> None:
    """Do nothing: no connection is counted."""


def counted_address(address: str, proxies: tuple[IPv4Network | IPv6Network, ...]) -> str:
    """Return the network that an address counts for, "" for an address that many clients may share.

    Such addresses are loopback addresses and proxies that do not report their client.
    """
    is_known = known_address(address) is not None and not is_within(address, (*LOOPBACK, *proxies))
    return network_of(address) if is_known else ""


def is_within(address: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Return whether an address is in one of the networks; False for a text that is no address."""
    known = known_address(address)
    return known is not None and any(known in network for network in networks)


def known_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the parsed address, IPv4 for an IPv4-mapped IPv6 address; None for a text that is no address."""
    try:
        known = ip_address(text)
    except ValueError:
        return None
    return (known.ipv4_mapped if isinstance(known, IPv6Address) else None) or known
