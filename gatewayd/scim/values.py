"""Parsers of single values from clients, tolerant of the variants that providers send (RFC 7643, 2 and 4).

A null and a blank text are no value (RFC 7643 section 2.5). Errors are invalid_request, code `invalidValue`,
and name the attribute, such as `name.givenName` or `emails[1].value`; elements count from 0.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from gatewayd.accounts.records import Email
from gatewayd.accounts.texts import MAX_EMAIL, MAX_NAME, clean, is_plain, normalise_email
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.scim.records import ResourceType
from gatewayd.text import casefold_nfc

MAX_EXTERNAL_ID_CHARACTERS: Final = 512
MAX_TYPE_CHARACTERS: Final = 64
MAX_EMAILS: Final = 100
MAX_MEMBERS: Final = 10_000
MAX_ATTRIBUTES: Final = 1000
MAX_KEPT_KEYS: Final = 512
DEFAULT_TYPE: Final = "work"

_FLAGS: Final[Mapping[str, bool]] = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class SentEmail:
    """An e-mail address as it was sent; absent sub-attributes are None."""

    value: str | None = None
    type: str | None = None
    primary: bool | None = None


@dataclass(frozen=True, slots=True)
class SentMembers:
    """Members of a group as they were sent; `displays` holds their display names, by user id."""

    user_ids: tuple[str, ...] = ()
    displays: Mapping[str, str] = field(default_factory=dict)


def invalid_value(name: str, reason: str) -> GatewayError:
    """Return the error for an invalid value of an attribute."""
    return invalid(f"cannot accept {name}: {reason}", param=name, code="invalidValue")


def too_many(name: str, most: int) -> GatewayError:
    """Return the error for a list that is too long."""
    message = f"cannot accept {name}: there are more than {most}"
    return GatewayError(ErrorKind.TOO_LARGE, message, param=name, code="tooMany")


def check_attributes(body: Mapping[str, Any]) -> None:
    """Raise too_large for an object with more attributes than any resource has."""
    if len(body) > MAX_ATTRIBUTES:
        raise too_many("attributes", MAX_ATTRIBUTES)


def members_by_name(value: Mapping[str, Any], names: Iterable[str], where: str = "") -> dict[str, Any]:
    """Return the members of an object with these names in any case, in the order of the object.

    Raises invalid_request, code `invalidSyntax`, for a duplicate. `where` is the path of the object.
    """
    known = {name.lower(): name for name in names}
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = known.get(key.lower())
        if name is None:
            continue
        if name in found:
            whole = f"{where}.{name}" if where else name
            raise invalid(f"cannot accept {whole}: it occurs twice", param=whole, code="invalidSyntax")
        found[name] = item
    return found


def read_text(value: Any, name: str, *, longest: int = MAX_NAME) -> str | None:
    """Return a stripped text, None if it is null or blank."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid_value(name, "it is not a text")
    try:
        return clean(value, name, longest=longest, empty=True) or None
    except GatewayError as error:
        raise invalid(error.message, param=name, code="invalidValue") from error


def read_address(value: Any, name: str, exempt: Collection[str] = ()) -> str | None:
    """Return a stripped e-mail address, None if it is null or blank.

    An address in `exempt` is not checked.
    """
    text = read_text(value, name, longest=MAX_EMAIL)
    if text is None or text in exempt:
        return text
    try:
        normalise_email(text)
    except GatewayError as error:
        raise invalid_value(name, "it is not a valid e-mail address") from error
    return text


def read_user_name(value: Any, exempt: Collection[str] = ()) -> str:
    """Return a user name, which is an e-mail address."""
    return require_text(read_address(value, "userName", exempt), "userName")


def require_text(text: str | None, name: str) -> str:
    """Return the text of a required attribute."""
    if text is None:
        raise invalid_value(name, "it is required")
    return text


def read_external_id(value: Any) -> str | None:
    """Return an external id as it was sent, None if it is null or blank."""
    return None if read_text(value, "externalId", longest=MAX_EXTERNAL_ID_CHARACTERS) is None else str(value)


def read_flag(value: Any, name: str) -> bool:
    """Return a boolean; providers also send a text, or `[{"value": "False"}]`."""
    found = unwrap_value(value)
    if isinstance(found, str):
        found = _FLAGS.get(found.strip().lower())
    if not isinstance(found, bool):
        raise invalid_value(name, "it is neither true nor false")
    return found


def unwrap_value(value: Any) -> Any:
    """Return x for `[{"value": x}]`, which Entra ID sends in place of x; other values unchanged."""
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        return value
    return members_by_name(value[0], ("value",)).get("value", value)


def read_email(value: Any, name: str, exempt: Collection[str] = ()) -> SentEmail:
    """Return one element of `emails`, sent as an object or as the address alone."""
    if isinstance(value, str):
        return SentEmail(read_address(value, f"{name}.value", exempt))
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor a text")
    parts = members_by_name(value, ("value", "type", "primary"), name)
    primary = parts.get("primary")
    return SentEmail(
        read_address(parts.get("value"), f"{name}.value", exempt),
        read_text(parts.get("type"), f"{name}.type", longest=MAX_TYPE_CHARACTERS),
        None if primary is None else read_flag(primary, f"{name}.primary"),
    )


def read_emails(value: Any, exempt: Collection[str] = (), name: str = "emails") -> tuple[SentEmail, ...]:
    """Return the elements of `emails` with their types, each pair of address and type once.

    A single object or address counts as a list of one. An element with a blank address is dropped: providers
    send it for a person without an address. An element without the sub-attribute `value` and a second primary
    address are refused. More than 100 are too_large.
    """
    found: dict[tuple[str, str], SentEmail] = {}
    for index, item in enumerate(list_elements(value, name, MAX_EMAILS)):
        where = f"{name}[{index}]"
        email = read_email(item, where, exempt)
        if email.value is None:
            if isinstance(item, dict) and "value" not in members_by_name(item, ("value",)):
                raise invalid_value(f"{where}.value", "it is required")
            continue
        kind = email.type or DEFAULT_TYPE
        key = email_key(email.value, kind)
        before = found.setdefault(key, replace(email, type=kind))
        found[key] = replace(before, primary=before.primary or email.primary)
    check_one_primary(found.values(), name)
    return tuple(found.values())


def check_one_primary(emails: Iterable[SentEmail], name: str = "emails") -> None:
    """Raise invalid_request for more than one primary address (RFC 7643 section 2.4)."""
    if sum(email.primary is True for email in emails) > 1:
        raise invalid_value(name, "more than one is primary")


@lru_cache(maxsize=MAX_KEPT_KEYS)
def text_key(text: str) -> str:
    """Return the case-folded form of a text of at most 1024 characters for comparison.

    It is cached: the steps of one message compare the same texts many times.
    """
    return casefold_nfc(text)


def email_key(value: str, kind: str) -> tuple[str, str]:
    """Return the key of an e-mail address that is unique within a user."""
    return text_key(value), text_key(kind)


def settle_primary(emails: Sequence[SentEmail]) -> tuple[Email, ...]:
    """Return e-mail addresses; without a primary one, the first without an explicit `primary` becomes it."""
    default = None
    if not any(email.primary for email in emails):
        default = next((email for email in emails if email.primary is None), None)
    return tuple(
        Email(
            email.value or "", email.type or DEFAULT_TYPE, primary=email.primary is True or email is default
        )
        for email in emails
    )


def read_members(value: Any, name: str = "members") -> SentMembers:
    """Return distinct members: objects with a `value`, or ids alone, in a list or a single one.

    Members must be users; other types are refused. More than 10,000 are too_large.
    """
    user_ids: dict[str, None] = {}
    displays: dict[str, str] = {}
    for index, item in enumerate(list_elements(value, name, MAX_MEMBERS)):
        user_id, display = _read_member(item, f"{name}[{index}]")
        user_ids[user_id] = None
        if display is not None:
            displays[user_id] = display
    return SentMembers(tuple(user_ids), displays)


def _read_member(value: Any, name: str) -> tuple[str, str | None]:
    if isinstance(value, str):
        return require_text(read_text(value, name), name), None
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor an id")
    parts = members_by_name(value, ("value", "type", "display"), name)
    kind = read_text(parts.get("type"), f"{name}.type", longest=MAX_TYPE_CHARACTERS)
    if kind is not None and kind.lower() != ResourceType.USER.lower():
        raise invalid_value(f"{name}.type", "it is not User, the only type of members")
    user_id = require_text(read_text(parts.get("value"), f"{name}.value"), f"{name}.value")
    return user_id, read_display(parts.get("display"))


def read_display(value: Any) -> str | None:
    """Return the display name of a member, shortened to MAX_NAME characters; None for an unusable one.

    A bad display name never refuses a member.
    """
    if not isinstance(value, str) or not is_plain(value.strip()):
        return None
    return value.strip()[:MAX_NAME].strip() or None


def list_elements(value: Any, name: str, most: int) -> list[Any]:
    """Return the elements of a multi-valued attribute; a single object or text counts as a list of one."""
    if value is None:
        return []
    if isinstance(value, (dict, str)):
        return [value]
    if not isinstance(value, list):
        raise invalid_value(name, "it is not a list")
    if len(value) > most:
        raise too_many(name, most)
    return value
