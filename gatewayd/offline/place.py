"""The places of a gateway, from its settings: the same that the daemon reads."""

import contextlib
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from gatewayd.accounts.signing_file import PLUGIN_FILE
from gatewayd.backup.places import BACKUPS_FOLDER, SIGNING_FILE, GatewayPlace
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import DEFAULT_FILE, ConfigurationError, Settings, definitions, load
from gatewayd.settings.definitions import FURTHER_SECRETS, TABLE_SECRETS, names_by_alias
from gatewayd.storage.engine.location import parse

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
STORE: Final = Path("/etc/credstore")
STORE_PREFIX: Final = "gatewayd."
DROP_INS: Final = "conf.d"
OWN_STATE: Final = ("DATA_DIR", "GATEWAYD_DATA_DIR", "STATE_DIRECTORY")
"""Variables that name the state of another gateway than that of the service."""


@dataclass(frozen=True, slots=True)
class OfflineGateway:
    """A gateway as an offline process finds it."""

    settings: Settings
    place: GatewayPlace


def read_gateway(file: Path | None, directory: Path | None, environ: Mapping[str, str]) -> OfflineGateway:
    """Return the gateway of a configuration file, the environment and the credentials of the service.

    `directory` replaces the setting `backup_dir`. Raises not_configured with every problem found.
    """
    try:
        with _with_credentials(file, environ) as given:
            settings = load(file, given)
    except ConfigurationError as error:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            "cannot read the configuration: " + "; ".join(str(each) for each in error.problems),
        ) from error
    return OfflineGateway(settings, _place_of(settings, file, directory))


def become_owner(folder: Path) -> None:
    """Work as the user of the state, if this is root: new files must be theirs."""
    if os.geteuid() == 0 and folder.exists():
        owner = folder.stat()
        if owner.st_uid != 0:
            os.setgroups([])
            os.setgid(owner.st_gid)
            os.setuid(owner.st_uid)


def _place_of(settings: Settings, file: Path | None, directory: Path | None) -> GatewayPlace:
    main = file or DEFAULT_FILE
    files = {main.name: main} if main.is_file() else {}
    files |= {f"{DROP_INS}/{path.name}": path for path in sorted((main.parent / DROP_INS).glob("*.toml"))}
    secrets = dict(_secret_settings(settings))
    return GatewayPlace(
        data_dir=settings.data_dir,
        has_files=settings.file_store == "directory",
        backup_dir=directory or settings.backup_path(),
        other_backup_dirs=frozenset({settings.backup_path(), settings.data_dir / BACKUPS_FOLDER}),
        location=parse(settings.database_location(), settings.database_pool_size),
        plugins_dir=settings.plugins_dir,
        settings_files=files,
        secrets=secrets,
        secret_values=frozenset({*_configured_secrets(settings), *_secrets_of_files(files.values())}),
        secret_files=frozenset(
            {
                settings.data_dir / SIGNING_FILE,
                settings.data_dir / PLUGIN_FILE,
                settings.scim_token_path(),
            }
        ),
    )


def _secret_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the settings that are one secret, or a list of them, one a line."""
    defaults = type(settings).model_fields
    for name, each in definitions().items():
        value = getattr(settings, name)
        if each.secret and value != defaults[name].default:
            text = "\n".join(_secrets_in(value))
            if text:
                yield name, text


def _configured_secrets(settings: Settings) -> Iterator[str]:
    """Yield every secret that is not a default, those within tables too."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value != field.default:
            yield from filter(None, _secrets_in(value))


def _secrets_of_files(files: Iterable[Path]) -> Iterator[str]:
    """Yield the secrets in configuration files, those that a variable or a credential replaces too."""
    names = names_by_alias()
    for path in files:
        for key, value in tomllib.loads(path.read_text()).items():
            name = names.get(key, "")
            if name in TABLE_SECRETS:
                secrets = {TABLE_SECRETS[name], *FURTHER_SECRETS}
                value = [each for table in value for key, each in table.items() if key in secrets]
            elif not name or not definitions()[name].secret:
                continue
            default = set(_secrets_in(Settings.model_fields[name].default))
            yield from {*_texts_in(value)} - default - {""}


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(each)


def _secrets_in(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _secrets_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets_in(each)


@contextlib.contextmanager
def _with_credentials(file: Path | None, environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Give root the credentials of the service, which its manager gives the daemon alone."""
    is_service = file is None and not any(name in environ for name in (CREDENTIALS, *OWN_STATE))
    if not is_service or os.geteuid() != 0 or not STORE.is_dir():
        yield environ
        return
    with tempfile.TemporaryDirectory(prefix="gatewayd-") as folder:
        for path in STORE.glob(f"{STORE_PREFIX}*"):
            Path(folder, path.name.removeprefix(STORE_PREFIX)).symlink_to(path)
        yield {**environ, CREDENTIALS: folder}
