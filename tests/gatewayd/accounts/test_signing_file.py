from pathlib import Path

import pytest

from gatewayd.accounts import signing_file
from gatewayd.accounts.signing_file import (
    MAX_FORMER_SECRETS,
    PLUGIN_FILE,
    SigningSecrets,
    drop_expired,
    read_secrets,
    rotate_secret,
)
from gatewayd.errors import ErrorKind, GatewayError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "secret-key"
    path.write_text("first-secret\n")
    return path


def test_the_former_secret_stays_until_its_sessions_end(path: Path) -> None:
    rotated = rotate_secret(path, "of plugins", 100)
    assert rotated.former == {"first-secret": 100}
    assert rotated.current != "first-secret"
    assert read_secrets(path) == rotated
    again = rotate_secret(path, "another", 200)
    assert again.former == {rotated.current: 200, "first-secret": 100}
    assert path.stat().st_mode & 0o777 == 0o600
    # Plugins keep the secret that they had at first.
    assert path.with_name(PLUGIN_FILE).read_text() == "of plugins\n"
    assert drop_expired(path, 99) == again
    assert drop_expired(path, 100) == SigningSecrets(again.current, {rotated.current: 200})
    assert read_secrets(path).former == {rotated.current: 200}


def test_killed_in_between_it_is_one_of_both(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(signing_file.os, "fsync", kill)
    with pytest.raises(Killed):
        rotate_secret(path, "of plugins", 100)
    assert read_secrets(path) == SigningSecrets("first-secret")
    monkeypatch.undo()
    assert rotate_secret(path, "of plugins", 100).former == {"first-secret": 100}


def test_former_secrets_are_bounded_and_checked(path: Path) -> None:
    for _ in range(MAX_FORMER_SECRETS):
        rotate_secret(path, "of plugins", 100)
    with pytest.raises(GatewayError, match="former ones are still kept") as refusal:
        rotate_secret(path, "of plugins", 100)
    assert refusal.value.kind is ErrorKind.CONFLICT
    for line in ("other", "other until=", "other until=x"):
        path.write_text(f"first\n{line}\n")
        with pytest.raises(GatewayError, match="no former secret"):
            read_secrets(path)
