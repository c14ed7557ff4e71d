"""Orders of gatewayctl that need no daemon."""

from pathlib import Path

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.offline.orders import run_order
from gatewayd import ids
from gatewayd.accounts.signing_file import read_secrets
from gatewayd.errors import GatewayError
from gatewayd.offline import __main__ as offline
from gatewayd.offline.orders import ORDERS, OfflineOrder
from gatewayd.offline.place import read_gateway


@pytest.mark.process
def test_a_process_of_its_own_takes_an_order_and_gives_the_result_or_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most other tests fork the program; this one starts it as `gatewayctl` does."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    told: list[str] = []
    assert run_order("backup.list", told.append, None) == []
    with pytest.raises(CommandError, match="no_such_backup") as caught:
        run_order("backup.verify", told.append, None, name="no_such_backup")
    assert caught.value.kind == "not_found"


def test_an_ordinary_user_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setitem(ORDERS, "backup.list", refuse)
    with pytest.raises(GatewayError, match="cannot work on the state of the gateway: permission denied"):
        offline._run(OfflineOrder(verb="backup.list"))


@pytest.mark.parametrize("seconds", [0, 86400])
def test_sessions_of_a_former_secret_end_in_time_or_at_once_whatever_the_clock(
    tmp_path: Path, seconds: int
) -> None:
    key = tmp_path / "secret-key"
    key.write_text("the-secret-that-became-known-0123456789\n")
    gateway = read_gateway(None, None, {"DATA_DIR": str(tmp_path)})
    before = ids.now()
    ORDERS["secret.rotate"](gateway, OfflineOrder(verb="secret.rotate", seconds=seconds), None, print)
    [until] = read_secrets(key).former.values()
    assert until == 0 if not seconds else until >= before + seconds
    assert key.stat().st_mode & 0o077 == 0
