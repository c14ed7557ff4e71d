"""Groups as clients of this API family and plugins see them (peer-compatible keys)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import Group

PROVISIONING: Final = frozenset({"scim", "modified_us"})
"""What a group has for SCIM alone."""


async def show_groups(groups: Sequence[Group], service: Groups) -> list[dict[str, Any]]:
    """Return groups without their members, which are counted, and without what providers call them."""
    counts = await service.count_members(groups)
    rows = [asdict(group) | {"member_count": counts[group.id]} for group in groups]
    return [{name: value for name, value in row.items() if name not in PROVISIONING} for row in rows]
