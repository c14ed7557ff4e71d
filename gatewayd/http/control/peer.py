"""Peer credentials of the control socket, and the rules of admission."""

import grp
import os
import pwd
import socket
import struct
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError

# struct ucred of unix(7): process, user and group id.
CREDENTIALS_STRUCT: Final = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class SocketPeer:
    """The process at the other end of a connection, as the kernel reports it."""

    pid: int
    uid: int
    gid: int

    @property
    def name(self) -> str:
        """Name of the unix user, or its number without a name."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)


PEER: web.RequestKey[SocketPeer] = web.RequestKey("peer", SocketPeer)


class PeerRules:
    """Admission rules: root, the daemon's own user, and the members of a group ("" for none)."""

    def __init__(self, group: str, owner_uid: int) -> None:
        self._group = group
        self._owner_uid = owner_uid

    def admit(self, request: web.Request) -> SocketPeer:
        """Return the peer of a request; forbidden when the rules exclude it."""
        peer = read_peer(request)
        if peer.uid not in {0, self._owner_uid} and not self._is_member(peer):
            group = f" or a member of the group {self._group!r}" if self._group else ""
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                f"cannot use the control socket as {peer.name!r}: only root, the daemon's user{group} may",
            )
        return peer

    def _is_member(self, peer: SocketPeer) -> bool:
        if not self._group:
            return False
        try:
            gid = grp.getgrnam(self._group).gr_gid
            name = pwd.getpwuid(peer.uid).pw_name
        except KeyError:
            return False
        return gid in os.getgrouplist(name, peer.gid)


def read_peer(request: web.Request) -> SocketPeer:
    """Return the peer of a connection; forbidden for a connection that is no unix socket."""
    transport = request.transport
    channel = transport.get_extra_info("socket") if transport is not None else None
    if channel is None or channel.family != socket.AF_UNIX:
        raise GatewayError(ErrorKind.FORBIDDEN, "cannot identify the peer: the connection is no unix socket")
    data = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS_STRUCT.size)
    return SocketPeer(*CREDENTIALS_STRUCT.unpack(data))
