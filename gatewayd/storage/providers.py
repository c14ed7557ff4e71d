"""Store of the providers of the database: one JSON value, whose keys are encrypted."""

from dataclasses import asdict
from typing import Any, Final

from gatewayd.catalog.providers.options import NO_OPTIONS, ConnectionOptions
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily, StoredProviders
from gatewayd.encryption import DecryptionError, SecretKeys, TextCipher
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.tables.accounts import ValueRow

VALUE_NAME: Final = "MODEL_PROVIDERS"
DERIVATION_INFO: Final = b"gatewayd keys of providers"
UNREADABLE: Final = "its key was encrypted with another secret: enter the key again"


class TortoiseProviders:
    """Implements `ProviderStore` of the catalog, in a row of the stored values."""

    def __init__(self, secret: bytes | SecretKeys) -> None:
        self._cipher = TextCipher(secret, DERIVATION_INFO)

    async def load(self) -> StoredProviders:
        """Return what is stored; nothing before the first change."""
        with translate_errors("read the providers"):
            row = await ValueRow.get_or_none(name=VALUE_NAME)
        if row is None:
            return StoredProviders()
        found: dict[str, Any] = decode(row.value, "the providers")
        enabled = {ProviderFamily(name): value for name, value in found["enabled"].items()}
        return StoredProviders(tuple(map(self._record_of, found["providers"])), enabled, found["revision"])

    async def save(self, stored: StoredProviders, *, at: int, by: str) -> None:
        """Replace what is stored in one statement."""
        value = {
            "revision": stored.revision,
            "enabled": {family.value: value for family, value in stored.enabled.items()},
            "providers": [self._columns_of(each) for each in stored.providers],
        }
        columns = {
            "name": VALUE_NAME,
            "value": encode(value, "providers"),
            "updated_at": at,
            "updated_by": by,
        }
        async with write_transaction("store the providers"):
            await upsert_rows(ValueRow, [columns], ["name"])

    def _columns_of(self, provider: ManagedProvider) -> dict[str, Any]:
        return {
            "id": provider.id,
            "name": provider.name,
            "kind": provider.kind,
            "base_url": provider.base_url,
            "key": provider.unreadable_key or (self._cipher.encrypt(provider.key) if provider.key else ""),
            "prefix": provider.prefix,
            "models": list(provider.models),
            "connection_type": provider.connection_type,
            "is_active": provider.is_active,
            "options": provider.unreadable_options or self._encrypted_options(provider.options),
        }

    def _encrypted_options(self, options: ConnectionOptions) -> str:
        if options == NO_OPTIONS:
            return ""
        return self._cipher.encrypt(encode(asdict(options), "options of a provider"))

    def _record_of(self, columns: dict[str, Any]) -> ManagedProvider:
        encrypted = columns.get("options", "")
        known = {**columns, "models": tuple(columns["models"]), "options": NO_OPTIONS}
        try:
            if known["key"]:
                known["key"] = self._cipher.decrypt(known["key"])
            if encrypted:
                known["options"] = _options_of(decode(self._cipher.decrypt(encrypted), "options"))
        except DecryptionError:
            unreadable = {"unreadable_key": columns["key"], "unreadable_options": encrypted}
            return ManagedProvider(**{**known, **unreadable, "key": "", "problem": UNREADABLE})
        return ManagedProvider(**known)


def _options_of(columns: dict[str, Any]) -> ConnectionOptions:
    known = {name: _tuples(value) for name, value in columns.items()}
    return ConnectionOptions(**known)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
