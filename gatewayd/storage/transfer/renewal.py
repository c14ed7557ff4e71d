"""Renewal of everything that is stored encrypted, after the secret of the gateway was replaced."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tortoise.transactions import in_transaction

from gatewayd.encryption import ENCRYPTED_PREFIX, SecretKeys, TextCipher
from gatewayd.storage import identities, providers
from gatewayd.storage.engine import encryption
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode
from gatewayd.storage.engine.statements import SqlStatement

PLACES: Final[Sequence[tuple[str, Sequence[str], Sequence[str], bytes]]] = (
    ("plugins", ("family", "id"), ("valves",), encryption.DERIVATION_INFO),
    ("user_valves", ("user_id", "family", "plugin_id"), ("valves",), encryption.DERIVATION_INFO),
    ("user_identities", ("user_id", "provider"), identities.TOKEN_COLUMNS, identities.TOKEN_USE),
    ("stored_values", ("name",), ("value",), providers.DERIVATION_INFO),
)
"""Table, key, columns and use. Replies of repeated requests and values that clients keep are not renewed:
they last for shorter than a former secret."""

JSON_COLUMNS: Final = frozenset({"valves", "value"})

log = logging.getLogger(__name__)


async def renew_secrets(database: Database, keys: SecretKeys) -> int:
    """Encrypt with the present secret what is encrypted with a former one; return the number of rows.

    All in one transaction, which excludes other processes. What no secret decrypts stays as it is.
    """
    if not keys.former:
        return 0
    changed = 0
    async with database.exclusive("renewal of secrets"):
        with translate_errors("renew encrypted values"):
            async with in_transaction() as client:
                for place in PLACES:
                    changed += await _renew_table(client, keys, *place)
    if changed:
        log.info("encrypted stored values with the new secret", extra={"rows": changed})
    return changed


async def _renew_table(
    client: Any, keys: SecretKeys, table: str, key: Sequence[str], columns: Sequence[str], use: bytes
) -> int:
    cipher = TextCipher(keys, use)
    rows = await SqlStatement(client).run(f"SELECT {', '.join((*key, *columns))} FROM {table}")  # noqa: S608
    changed = 0
    for row in rows:
        fresh = {name: text for name in columns if (text := _renewed(cipher, row[name], name)) is not None}
        if not fresh:
            continue
        statement = SqlStatement(client)
        changes = ", ".join([f"{name} = {statement.bind(text)}" for name, text in fresh.items()])
        where = " AND ".join([f"{name} = {statement.bind(row[name])}" for name in key])
        await statement.run(f"UPDATE {table} SET {changes} WHERE {where}")  # noqa: S608
        changed += 1
    return changed


def _renewed(cipher: TextCipher, stored: str | None, column: str) -> str | None:
    """Return a column with its encrypted texts renewed; None if none is of a former secret."""
    if stored is None or ENCRYPTED_PREFIX not in stored:
        return None
    if column not in JSON_COLUMNS:
        return cipher.renew(stored)
    value = decode(stored, column)
    changed: list[str] = []

    def renew(text: str) -> str:
        fresh = cipher.renew(text)
        if fresh is None:
            return text
        changed.append(fresh)
        return fresh

    value = _walk(value, renew)
    return encode(value, column) if changed else None


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value) if value.startswith(ENCRYPTED_PREFIX) else value
    if isinstance(value, Mapping):
        return {name: _walk(each, change) for name, each in value.items()}
    return [_walk(each, change) for each in value] if isinstance(value, list) else value
