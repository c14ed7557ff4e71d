"""Owners of files and collections as clients of this API family see them (2.6, 2.7; peer-compatible keys)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gatewayd.accounts.records import User
from gatewayd.accounts.users import Users

RenderedDocument = dict[str, Any]


def render_owner(user: User) -> RenderedDocument:
    """Return what lists tell of an owner."""
    return {"id": user.id, "name": user.name, "role": user.shown_role.value, "email": user.email}


@dataclass(frozen=True, slots=True)
class OwnerFinder:
    """Finds the owners of what a page lists; a deleted one is None."""

    users: Users

    async def shown(self, ids: Iterable[str]) -> Mapping[str, RenderedDocument | None]:
        """Return the owners by id."""
        found = {user_id: await self.users.find(user_id) for user_id in dict.fromkeys(ids)}
        return {user_id: None if user is None else render_owner(user) for user_id, user in found.items()}
