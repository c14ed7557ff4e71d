"""What removed accounts left in collections that are given to somebody: files that nobody owns."""

from collections.abc import Sequence
from typing import Final

from gatewayctl.client import ControlClient
from gatewayctl.paging import everything
from gatewayctl.verbs import Session
from gatewayctl.wire import routes
from gatewayctl.wire.files import Gift

PAGE: Final = 1000


def ownerless(client: ControlClient, collection: str) -> list[str]:
    """Return the ids of the files in a collection whose owner's account is gone."""
    members = everything(
        lambda at: client.call(routes.LIST_COLLECTION_FILES, collection, offset=at or None, limit=PAGE),
        lambda page: page.files,
    )
    return [member.file.id for member in members if not member.file.user]


def settle(session: Session, found: Sequence[str], to: str, *, gives: bool, dry_run: bool) -> None:
    """Give files to a user, or say how many stay with nobody."""
    if not found:
        return
    if not gives:
        session.note(f"{len(found)} files in it still belong to nobody: --with-files gives them, too")
        return
    for file_id in found:
        session.client.call(routes.GIVE_FILE, file_id, body=Gift(user=to), dry_run=dry_run)
    session.note(f"{'dry run: ' if dry_run else ''}gave {len(found)} files that belonged to nobody")
