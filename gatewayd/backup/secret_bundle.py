"""The secrets of a gateway: left out of a backup, or encrypted with a passphrase."""

import base64
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from gatewayd.backup.archive import SETTINGS, is_member_name
from gatewayd.backup.places import GatewayPlace
from gatewayd.encryption import DecryptionError, decrypt_with_passphrase, encrypt_with_passphrase
from gatewayd.errors import ErrorKind, GatewayError

REPLACED: Final = "(left out of the backup)"
MIN_PASSPHRASE_CHARACTERS: Final = 12


class _Sealed(BaseModel):
    model_config = ConfigDict(extra="ignore")

    files: dict[str, str]
    settings: dict[str, str]
    configuration: dict[str, str]


@dataclass(frozen=True, slots=True)
class SecretBundle:
    """Files of secrets by their name in the state, secret settings by name, and whole configuration files."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, bytes] = field(default_factory=dict)

    def seal(self, passphrase: str) -> bytes:
        """Return the bundle, which only the passphrase opens."""
        sealed = _Sealed(
            files=_encoded(self.files),
            settings=dict(self.settings),
            configuration=_encoded(self.configuration),
        )
        return encrypt_with_passphrase(sealed.model_dump_json().encode(), passphrase)


def open_bundle(data: bytes, passphrase: str) -> SecretBundle:
    """Return an encrypted bundle; forbidden for another passphrase."""
    try:
        found = _Sealed.model_validate_json(decrypt_with_passphrase(data, passphrase))
        return SecretBundle(_decoded(found.files), found.settings, _decoded(found.configuration))
    except (DecryptionError, ValidationError, ValueError) as error:
        raise GatewayError(
            ErrorKind.FORBIDDEN,
            "cannot open the secrets of the backup: they were encrypted with another passphrase",
        ) from error


def check_passphrase(passphrase: str) -> None:
    """Raise invalid_request for a passphrase that is too short."""
    if len(passphrase) < MIN_PASSPHRASE_CHARACTERS:
        raise GatewayError(
            ErrorKind.INVALID_REQUEST,
            f"cannot use the passphrase: it has fewer than {MIN_PASSPHRASE_CHARACTERS} characters",
            param="passphrase",
        )


def collect_secrets(place: GatewayPlace) -> SecretBundle:
    """Return the secrets of a gateway."""
    files = {path.name: path.read_bytes() for path in sorted(place.secret_files) if path.is_file()}
    configuration = {name: path.read_bytes() for name, path in place.settings_files.items()}
    return SecretBundle(files, place.secrets, configuration)


def without_secrets(text: str, secrets: frozenset[str]) -> str | None:
    """Return the text of a configuration file with its secrets replaced.

    None if that cannot be done, for example because a secret is written with escapes.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REPLACED)
    try:
        rest = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return text if secrets.isdisjoint(_texts(rest)) else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(data).decode() for name, data in files.items()}


def _decoded(files: Mapping[str, str]) -> dict[str, bytes]:
    for name in files:
        if not is_member_name(SETTINGS + name):
            raise ValueError("a name leads out of the folder")
    return {name: base64.b64decode(data, validate=True) for name, data in files.items()}
