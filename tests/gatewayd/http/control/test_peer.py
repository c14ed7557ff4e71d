"""Who is at the other end."""

import grp
import os
import pwd
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.control import peer as module
from gatewayd.http.control.peer import CREDENTIALS_STRUCT, PeerRules, SocketPeer, read_peer


class Channel:
    """A socket that says what it is told."""

    def __init__(self, uid: int, gid: int = 50, family: int = socket.AF_UNIX) -> None:
        self.family = family
        self._data = CREDENTIALS_STRUCT.pack(7, uid, gid)

    def getsockopt(self, *_: int) -> bytes:
        return self._data


def request_from(channel: Channel | None) -> Any:
    transport = SimpleNamespace(get_extra_info=lambda name: channel)
    return make_mocked_request("GET", "/", transport=transport)


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the users ann (200) and bob (300), of whom ann is in the group ops (90)."""
    names = {200: "ann", 300: "bob"}
    groups = {"ann": [50, 90], "bob": [50]}
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=names[uid]))
    monkeypatch.setattr(grp, "getgrnam", lambda name: SimpleNamespace(gr_gid={"ops": 90}[name]))
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: groups[name])


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize(
    ("uid", "group", "admitted"),
    [
        (0, "", True),
        (100, "", True),
        (200, "", False),
        (200, "ops", True),
        (200, "absent", False),
        (300, "ops", False),
        (400, "ops", False),
    ],
)
def test_root_the_owner_and_members_are_let_in(uid: int, group: str, admitted: bool) -> None:
    peers = PeerRules(group, 100)
    if admitted:
        assert peers.admit(request_from(Channel(uid))).uid == uid
        return
    with pytest.raises(GatewayError) as caught:
        peers.admit(request_from(Channel(uid)))
    assert caught.value.kind is ErrorKind.FORBIDDEN


@pytest.mark.usefixtures("accounts")
def test_peers_have_names() -> None:
    assert SocketPeer(1, 200, 50).name == "ann"
    assert SocketPeer(1, 400, 50).name == "400"


@pytest.mark.parametrize("channel", [None, Channel(0, family=socket.AF_INET)])
def test_only_unix_sockets_tell(channel: Channel | None) -> None:
    with pytest.raises(GatewayError) as caught:
        read_peer(request_from(channel))
    assert caught.value.kind is ErrorKind.FORBIDDEN


def test_the_kernel_tells_about_this_process() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = read_peer(request_from(ours))  # type: ignore[arg-type]
    assert peer == SocketPeer(os.getpid(), os.geteuid(), os.getegid())
    assert module.CREDENTIALS_STRUCT.size == 12
