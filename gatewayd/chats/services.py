"""The services of stored chats, as one bundle for who serves them."""

from dataclasses import dataclass

from gatewayd.chats.service import Chats
from gatewayd.chats.shares import ChatSharing
from gatewayd.chats.tags import ChatTags
from gatewayd.chats.transfer import ChatTransfer


@dataclass(frozen=True, slots=True)
class ChatServices:
    """What the routes of stored chats are served by."""

    chats: Chats
    tags: ChatTags
    sharing: ChatSharing
    transfer: ChatTransfer
