"""A gateway without documents."""

from collections.abc import Sequence
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.pipeline.records import ChatRequest


class NoAttachments:
    """The contract of Attachments: a warning about every reference, as none can be used."""

    async def attach(
        self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        for file in request.files:
            what = f"{file.get('type', 'documents')} {file.get('id', '')!r}"
            request.warnings.append(f"cannot use {what}: this gateway keeps no documents")
        return list(found)
