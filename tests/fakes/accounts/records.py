"""Records with everything filled in that a test does not care about."""

from typing import Any

from gatewayd.accounts.records import ApiKey, Group, Role, SessionOrigin, SignInMethod, StoredSession, User


def user(user_id: str, **fields: Any) -> User:
    """Return a user with an e-mail address of its own."""
    return User(
        **{"id": user_id, "email": f"{user_id}@example.org", "name": user_id, "role": Role.USER} | fields
    )


def group(group_id: str, **fields: Any) -> Group:
    """Return a group named like its id."""
    return Group(**{"id": group_id, "name": group_id} | fields)


def key(key_id: str, user_id: str, **fields: Any) -> ApiKey:
    """Return a key named like its id."""
    return ApiKey(
        **{
            "id": key_id,
            "user_id": user_id,
            "name": key_id,
            "digest": f"digest of {key_id}",
            "prefix": "sk-1",
        }
        | fields
    )


def session(session_id: str, user_id: str, **fields: Any) -> StoredSession:
    """Return a session of a user, begun at 1 by password, which expires at 100."""
    return StoredSession(
        **{
            "id": session_id,
            "user_id": user_id,
            "token_version": 0,
            "created_at": 1,
            "expires_at": 100,
            "last_seen_at": 1,
            "origin": SessionOrigin(SignInMethod.PASSWORD),
        }
        | fields
    )
