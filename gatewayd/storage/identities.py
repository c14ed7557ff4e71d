"""Store of the links of accounts to persons at identity providers."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.accounts.identity.records import LinkedIdentity, ProviderTokens
from gatewayd.encryption import DecryptionError, SecretKeys, TextCipher
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_unless_present
from gatewayd.storage.tables.accounts import UsedValueRow, UserExternalIdRow, UserIdentityRow, UserSubjectRow

TOKEN_USE = b"gatewayd tokens of identity providers"
"""Use of the key that encrypts the tokens."""

TOKEN_COLUMNS: Final = ("id_token", "refresh_token", "access_token")
NO_TOKENS: Final[dict[str, Any]] = {**dict.fromkeys(TOKEN_COLUMNS, ""), "expires_at": 0}


class TortoiseIdentities:
    """Implements `accounts.identity.interfaces.IdentityStore`; `secret` is the secret of the gateway."""

    def __init__(self, secret: bytes | SecretKeys) -> None:
        self._cipher = TextCipher(secret, TOKEN_USE)

    async def add(self, link: LinkedIdentity) -> None:
        """Insert a link; raise conflict if its identity, or the provider of its user, is linked."""
        async with write_transaction("add the identity"):
            await UserIdentityRow(**_columns(link), **NO_TOKENS).save(force_create=True)

    async def find(self, issuer: str, subject: str) -> LinkedIdentity | None:
        """Return the link of an identity."""
        if not fits_columns(UserIdentityRow, issuer=issuer, subject=subject):
            return None
        with translate_errors("read an identity"):
            row = await UserIdentityRow.get_or_none(issuer=issuer, subject=subject)
        return None if row is None else _record_of(row)

    async def list(self, user_id: str) -> Sequence[LinkedIdentity]:
        """Return the links of a user, sorted by provider."""
        if not fits_columns(UserIdentityRow, user_id=user_id):
            return []
        with translate_errors("list identities"):
            rows = await UserIdentityRow.filter(user_id=user_id).order_by("provider")
        return [_record_of(row) for row in rows]

    async def touch(self, link: LinkedIdentity) -> None:
        """Write `provisioning_id`, `email` and `used_at` of a link."""
        async with write_transaction("change the identity"):
            await UserIdentityRow.filter(user_id=link.user_id, provider=link.provider).update(
                provisioning_id=link.provisioning_id, email=link.email, used_at=link.used_at
            )

    async def remove(self, user_id: str, provider: str) -> bool:
        """Delete a link with its tokens; return whether there was one."""
        if not fits_columns(UserIdentityRow, user_id=user_id, provider=provider):
            return False
        async with write_transaction("remove the identity"):
            return await UserIdentityRow.filter(user_id=user_id, provider=provider).delete() > 0

    async def find_subject_owner(self, provider: str, subject: str) -> str | None:
        """Return the id of the user whose `oauth` has this subject of a provider."""
        return await _find_owner(UserSubjectRow, provider=provider, subject=subject)

    async def find_external_id_owner(self, provider: str, external_id: str) -> str | None:
        """Return the id of the user whose `scim` has this external id of a provider."""
        return await _find_owner(UserExternalIdRow, provider=provider, external_id=external_id)

    async def put_tokens(self, user_id: str, provider: str, tokens: ProviderTokens) -> None:
        """Store the tokens of a link; an empty token leaves the present one."""
        given = {name: getattr(tokens, name) for name in TOKEN_COLUMNS}
        columns = {name: self._cipher.encrypt(token) for name, token in given.items() if token}
        expiry = {"expires_at": tokens.expires_at} if tokens.access_token else {}
        if not columns:
            return
        async with write_transaction("store the tokens"):
            await UserIdentityRow.filter(user_id=user_id, provider=provider).update(**columns, **expiry)

    async def find_tokens(self, user_id: str, provider: str) -> ProviderTokens:
        """Return the tokens of a link; empty ones without a link or if they cannot be decrypted."""
        if not fits_columns(UserIdentityRow, user_id=user_id, provider=provider):
            return ProviderTokens()
        with translate_errors("read the tokens"):
            row = await UserIdentityRow.get_or_none(user_id=user_id, provider=provider)
        if row is None:
            return ProviderTokens()
        found = {name: self._decrypted(getattr(row, name)) for name in TOKEN_COLUMNS}
        return ProviderTokens(**found, expires_at=row.expires_at if found["access_token"] else 0)

    async def use_once(self, digest: str, expires_at: int) -> bool:
        """Store that a value was used; return False if it was used before, in any process."""
        record = {"digest": digest, "expires_at": expires_at}
        async with write_transaction("use a value once"):
            return await insert_unless_present(UsedValueRow, record, "digest")

    async def prune(self, before: int) -> int:
        """Delete the used values that expired before this time; return how many."""
        async with write_transaction("delete used values"):
            return await UsedValueRow.filter(expires_at__lt=before).delete()

    def _decrypted(self, stored: str) -> str:
        try:
            return self._cipher.decrypt(stored) if stored else ""
        except DecryptionError:
            return ""


async def _find_owner(row: type[UserSubjectRow | UserExternalIdRow], **values: str) -> str | None:
    if not fits_columns(row, **values):
        return None
    with translate_errors("read an identity"):
        found = await row.filter(**values).first()
    return None if found is None else str(found.user_id)  # type: ignore[union-attr]


def _columns(link: LinkedIdentity) -> dict[str, Any]:
    return {
        "user_id": link.user_id,
        "provider": link.provider,
        "issuer": link.issuer,
        "subject": link.subject,
        "provisioning_id": link.provisioning_id,
        "email": link.email,
        "linked_at": link.linked_at,
        "used_at": link.used_at,
    }


def _record_of(row: UserIdentityRow) -> LinkedIdentity:
    return LinkedIdentity(
        user_id=str(row.user_id),  # type: ignore[attr-defined]
        provider=row.provider,
        issuer=row.issuer,
        subject=row.subject,
        provisioning_id=row.provisioning_id,
        email=row.email,
        linked_at=row.linked_at,
        used_at=row.used_at,
    )
