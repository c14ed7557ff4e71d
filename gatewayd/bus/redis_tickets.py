"""Tickets of event streams in Redis: issued on one node, redeemed once on any."""

from typing import Final

from gatewayd import ids
from gatewayd.bus.redis_client import RedisClient
from gatewayd.encryption import DecryptionError, TextCipher
from gatewayd.events.tickets import LIFE_SECONDS

USE: Final = b"ticket"


class RedisTickets:
    """Implements `events.interfaces.TicketDesk`. Without Redis no ticket is issued or redeemed: unavailable.

    Redis has the digest of a ticket, and the credential encrypted with the ticket: it knows neither.
    """

    def __init__(self, client: RedisClient, *, prefix: str = "gatewayd") -> None:
        self._client = client
        self._prefix = f"{{{prefix}}}:ticket:"

    async def issue(self, credential: str) -> str:
        """Return a new ticket for a credential."""
        ticket = ids.new_secret()
        encrypted = TextCipher(ticket.encode(), USE).encrypt(credential)
        await self._client.run(lambda each: each.set(self._key(ticket), encrypted, nx=True, ex=LIFE_SECONDS))
        return ticket

    async def redeem(self, ticket: str) -> str | None:
        """Consume a ticket and return its credential; None for an invalid or expired ticket."""
        found: bytes | None = await self._client.run(lambda each: each.getdel(self._key(ticket)))
        if found is None:
            return None
        try:
            return TextCipher(ticket.encode(), USE).decrypt(found.decode())
        except DecryptionError:
            return None

    def _key(self, ticket: str) -> str:
        return self._prefix + ids.digest(ticket)
