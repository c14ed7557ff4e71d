"""Storage interface of links that work once, with the rules of `accounts.interfaces`."""

from collections.abc import Sequence
from typing import Protocol

from gatewayd.accounts.links.records import LinkKind, OneTimeLink


class OneTimeLinkStore(Protocol):
    """Links by id and by the digest of their token."""

    async def add(self, link: OneTimeLink) -> None:
        """Insert a link."""
        ...

    async def find(self, link_id: str) -> OneTimeLink | None:
        """Return the link with this id."""
        ...

    async def find_by_digest(self, digest: str) -> OneTimeLink | None:
        """Return the link with this digest."""
        ...

    async def list(self, kind: LinkKind, *, after: int) -> Sequence[OneTimeLink]:
        """Return the links of a kind that expire later than `after`, oldest first."""
        ...

    async def remove(self, link_id: str) -> bool:
        """Delete a link; of several concurrent calls one returns True."""
        ...

    async def remove_of_user(self, user_id: str) -> int:
        """Delete the sign-in links of an account; return how many."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the links that expired before this time; return how many."""
        ...
