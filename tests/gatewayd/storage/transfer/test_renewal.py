"""After a rotation everything stored is encrypted with the new secret, at once or not at all."""

import re
from pathlib import Path
from typing import Any

import pytest
from tortoise.connection import get_connection

from gatewayd.encryption import ENCRYPTED_PREFIX, SecretKeys, TextCipher
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.encryption import ValveCipher
from gatewayd.storage.engine.fields import encode
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.transfer import renewal
from gatewayd.storage.transfer.renewal import PLACES, renew_secrets
from tests.fakes.storage.gateway_place import insert_of, row_of, run

OLD, NEW = b"the old secret of the gateway....", b"the new secret of the gateway...."
BOTH = SecretKeys(NEW, (OLD,))


def sealed(secret: bytes | SecretKeys, table: str) -> dict[str, str]:
    """Return the encrypted columns of a row of a table."""
    [(_, _, columns, use)] = [place for place in PLACES if place[0] == table]
    cipher = TextCipher(secret, use)
    if columns == ("valves",):
        return {"valves": ValveCipher(OLD).encode({"key": "s3cret"})}
    if columns == ("value",):
        providers = [
            {"key": cipher.encrypt("sk-1"), "options": ""},
            {"key": "", "options": cipher.encrypt("{}")},
        ]
        return {"value": encode({"revision": 1, "providers": providers}, "providers")}
    return {name: cipher.encrypt(name) if name != "access_token" else "" for name in columns}


def fill(path: Path) -> None:
    run(path, insert_of(path, "users"), row_of(path, "users", id="u"))
    for table, key, _, _ in PLACES:
        given = {**dict.fromkeys(key, "u"), **sealed(OLD, table)}
        run(path, insert_of(path, table), row_of(path, table, **given))


async def tokens() -> list[tuple[str, str]]:
    """Return every encrypted text of the database, with its table."""
    client: Any = get_connection("sqlite")
    found = []
    for table, _, columns, _ in PLACES:
        for row in await client.execute_query_dict(f"SELECT {', '.join(columns)} FROM {table}"):
            texts = [text for value in row.values() for text in re.findall(r"sealed:1:[\w=-]+", value or "")]
            found += [(table, text) for text in texts]
    return found


def readable(texts: list[tuple[str, str]], secret: bytes) -> int:
    uses = {table: use for table, _, _, use in PLACES}
    ciphers = [(TextCipher(secret, uses[table]), text) for table, text in texts]
    count = 0
    for cipher, text in ciphers:
        try:
            cipher.decrypt(text)
        except ValueError:
            continue
        count += 1
    return count


async def test_everything_is_encrypted_anew(migrated_copy: Path) -> None:
    fill(migrated_copy)
    async with Database.open(sqlite(migrated_copy)) as database:
        before = await tokens()
        assert len(before) == 6
        assert await renew_secrets(database, SecretKeys(NEW)) == 0
        assert await renew_secrets(database, BOTH) == len(PLACES)
        after = await tokens()
        assert (readable(after, NEW), readable(after, OLD)) == (6, 0)
        assert await renew_secrets(database, BOTH) == 0
        assert await tokens() == after
        # What no secret decrypts is left as it is.
        assert await renew_secrets(database, SecretKeys(b"x" * 32, (b"y" * 32,))) == 0
        assert await tokens() == after


async def test_a_failure_in_between_changes_nothing(
    migrated_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(migrated_copy)
    real = renewal._renewed

    def fail(cipher: TextCipher, stored: str | None, column: str) -> str | None:
        if column == "value":
            raise KeyboardInterrupt
        return real(cipher, stored, column)

    monkeypatch.setattr(renewal, "_renewed", fail)
    async with Database.open(sqlite(migrated_copy)) as database:
        before = await tokens()
        with pytest.raises(KeyboardInterrupt):
            await renew_secrets(database, BOTH)
        assert await tokens() == before


def test_a_cipher_reads_both_and_writes_the_new() -> None:
    text = TextCipher(OLD, b"use").encrypt("words")
    both = TextCipher(BOTH, b"use")
    assert both.decrypt(text) == "words"
    fresh = both.renew(text)
    assert fresh is not None
    assert fresh.startswith(ENCRYPTED_PREFIX)
    assert TextCipher(NEW, b"use").decrypt(fresh) == "words"
    assert both.renew(fresh) is None
    assert both.renew("sealed:1:damaged") is None
