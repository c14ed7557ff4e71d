"""Serializer of owners of files, collections and plugins in the format of Open WebUI."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gatewayd.accounts.records import User
from gatewayd.accounts.users import Users

RenderedDocument = dict[str, Any]


def render_owner(user: User) -> RenderedDocument:
    """Return the fields of an owner in lists."""
    return {"id": user.id, "name": user.name, "role": user.shown_role.value, "email": user.email}


@dataclass(frozen=True, slots=True)
class OwnerFinder:
    """Finder of the owners of a page of records; a deleted owner is None."""

    users: Users

    async def shown(self, ids: Iterable[str]) -> Mapping[str, RenderedDocument | None]:
        """Return the owners by id."""
        found = {user_id: await self.users.find(user_id) for user_id in dict.fromkeys(ids)}
        return {user_id: None if user is None else render_owner(user) for user_id, user in found.items()}
