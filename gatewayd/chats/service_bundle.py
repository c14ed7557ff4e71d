"""The bundle of the stored-chat services for their HTTP and control routes."""

from dataclasses import dataclass

from gatewayd.chats.branches import ChatBranches
from gatewayd.chats.folders import ChatFolders
from gatewayd.chats.overview import ChatOverview
from gatewayd.chats.service import Chats
from gatewayd.chats.shares import ChatSharing
from gatewayd.chats.tags import ChatTags
from gatewayd.chats.transfer import ChatTransfer


@dataclass(frozen=True, slots=True)
class ChatServices:
    """The services behind the routes of stored chats."""

    chats: Chats
    tags: ChatTags
    sharing: ChatSharing
    transfer: ChatTransfer
    branches: ChatBranches
    folders: ChatFolders
    overview: ChatOverview
