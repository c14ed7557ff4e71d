"""The file of the signing secret: the present one, and those that it replaced, each with an end.

The first line is the present secret. Each further line is a former one, a blank, and `until=` with the epoch
seconds up to which sessions that it signed are valid.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk

UNTIL: Final = " until="
MAX_FORMER_SECRETS: Final = 8
PLUGIN_FILE: Final = "plugin-secret"
"""The secret of plugins beside a signing secret that was replaced: plugins encrypt with it, too."""


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    """The present secret, and the former ones by the end (epoch seconds) of their sessions."""

    current: str
    former: Mapping[str, int] = field(default_factory=dict)


def read_secrets(path: Path) -> SigningSecrets:
    """Return what a file has; not_configured for a line that is none of it, OSError without the file."""
    lines = path.read_text().strip().splitlines()
    former = {}
    for line in lines[1:]:
        secret, sign, until = line.partition(UNTIL)
        if not sign or not until.isdecimal():
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED, f"cannot read {path}: a line has no former secret", param="data_dir"
            )
        former[secret] = int(until)
    return SigningSecrets(lines[0] if lines else "", former)


def rotate_secret(path: Path, plugin_secret: str, until: int) -> SigningSecrets:
    """Put a new secret in front of the present one, whose sessions end at `until`, and return both.

    The secret of plugins stays as it is. Killed at any moment, this leaves the old file or the new one.
    Raises conflict when there are too many former secrets.
    """
    present = read_secrets(path)
    if len(present.former) >= MAX_FORMER_SECRETS:
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot rotate the signing secret: {len(present.former)} former ones are still kept; "
            "restart the daemon after the end of their sessions",
        )
    beside = path.with_name(PLUGIN_FILE)
    if not beside.exists():
        write_private(beside, f"{plugin_secret}\n")
    return _write(path, SigningSecrets(ids.new_secret(32), {present.current: until, **present.former}))


def drop_expired(path: Path, now: int) -> SigningSecrets:
    """Forget former secrets whose sessions have ended; nothing may be encrypted with them any more."""
    present = read_secrets(path)
    left = {secret: until for secret, until in present.former.items() if until > now}
    if len(left) == len(present.former):
        return present
    return _write(path, SigningSecrets(present.current, left))


def write_private(path: Path, text: str) -> None:
    """Replace a file that only its owner reads, durably and at once."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_to_disk(path.parent)


def _write(path: Path, secrets: SigningSecrets) -> SigningSecrets:
    lines = [secrets.current, *(f"{secret}{UNTIL}{until}" for secret, until in secrets.former.items())]
    write_private(path, "".join(f"{line}\n" for line in lines))
    return secrets
