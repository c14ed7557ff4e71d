"""For whom a request is counted: the account that sends it, and the address that it comes from."""

from collections.abc import Callable
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from aiohttp import web

from gatewayd.accounts.attempts import network_of
from gatewayd.http.connections.slots import SeatedConnection
from gatewayd.http.connections.uses import RequestUse
from gatewayd.http.context import client_address

LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))

IDENTITY_PROVIDER: Final = "an identity provider"
"""The account of whoever has the SCIM token: no id is like that."""


class RequestAdmission:
    """Counts requests; those of an address in `proxies` count for no address."""

    def __init__(self, proxies: tuple[IPv4Network | IPv6Network, ...]) -> None:
        self._has_proxies = bool(proxies)
        self._counted = lru_cache(maxsize=4096)(partial(counted_address, proxies=proxies))

    def count(self, request: web.Request, account: str, use: RequestUse) -> None:
        """Count a request for an account, "" for none, until it is answered; raises as `Room.hold` does."""
        connection = request.protocol
        if isinstance(connection, SeatedConnection):
            network = connection.network
            if network is None or self._has_proxies:
                network = self._network(request, connection)
            connection.hold(account, network, use)

    def count_work(self, request: web.Request, account: str, use: RequestUse) -> Callable[[], None]:
        """Count a request whose work goes on when its client leaves; raises as `Room.hold` does.

        What is returned is to be called when the work is done.
        """
        connection = request.protocol
        if isinstance(connection, SeatedConnection):
            return connection.hold_work(account, self._network(request, connection), use)
        return _nothing

    def _network(self, request: web.Request, connection: SeatedConnection) -> str:
        """Return the network of a request; without proxies it is that of all requests of its connection."""
        network = connection.network = self._counted(client_address(request))
        return network


def take_place(request: web.Request) -> None:
    """Give a connection beyond the room a place before its credential is looked up; raises unavailable.

    Requests that wait for the database would else hold the places of questions about the health.
    """
    connection = request.protocol
    if isinstance(connection, SeatedConnection) and connection.is_spare:
        connection.hold("", "", RequestUse.REQUEST)


def count(request: web.Request, use: RequestUse) -> None:
    """Count a request for nobody; raises as `Room.hold` does."""
    connection = request.protocol
    if isinstance(connection, SeatedConnection):
        connection.hold("", "", use)


def count_work(request: web.Request, use: RequestUse) -> Callable[[], None]:
    """Count a request for nobody, as `RequestAdmission.count_work` does."""
    connection = request.protocol
    return connection.hold_work("", "", use) if isinstance(connection, SeatedConnection) else _nothing


def _nothing() -> None:
    """Give nothing back: no connection is counted."""


def counted_address(address: str, proxies: tuple[IPv4Network | IPv6Network, ...]) -> str:
    """Return the network that an address counts for, "" for one behind which there may be anybody.

    That is this machine, and a proxy that does not say for whom it asks.
    """
    is_known = known_address(address) is not None and not is_within(address, (*LOOPBACK, *proxies))
    return network_of(address) if is_known else ""


def is_within(address: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Tell whether an address is in one of some networks; what is no address is in none."""
    known = known_address(address)
    return known is not None and any(known in network for network in networks)


def known_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, that of IPv4 for one that is mapped; None for what is none."""
    try:
        known = ip_address(text)
    except ValueError:
        return None
    return (known.ipv4_mapped if isinstance(known, IPv6Address) else None) or known
