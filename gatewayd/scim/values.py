"""Single values as clients send them: tolerant in form, strict in meaning (RFC 7643 sections 2 and 4).

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
    """An e-mail address as it was sent; None where nothing was said."""

    value: str | None = None
    type: str | None = None
    primary: bool | None = None


@dataclass(frozen=True, slots=True)
class SentMembers:
    """Members of a group as they were sent; `displays` has the names of those who have one, by id."""

    user_ids: tuple[str, ...] = ()
    displays: Mapping[str, str] = field(default_factory=dict)


def invalid_value(name: str, reason: str) -> GatewayError:
    """Return the error for the value of an attribute."""
    return invalid(f"cannot accept {name}: {reason}", param=name, code="invalidValue")


def too_many(name: str, most: int) -> GatewayError:
    """Return the error for a list that is too long."""
    message = f"cannot accept {name}: there are more than {most}"
    return GatewayError(ErrorKind.TOO_LARGE, message, param=name, code="tooMany")


def check_attributes(body: Mapping[str, Any]) -> None:
    """Refuse an object with more attributes than any resource has; most of them would be passed over."""
    if len(body) > MAX_ATTRIBUTES:
        raise too_many("attributes", MAX_ATTRIBUTES)


def members_by_name(value: Mapping[str, Any], names: Iterable[str], where: str = "") -> dict[str, Any]:
    """Return the members of an object that have these names in any case, in the order of the object.

    Raises invalid_request, code `invalidSyntax`, when one is there twice. `where` is what the object is.
    """
    known = {name.lower(): name for name in names}
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = known.get(key.lower())
        if name is None:
            continue
        if name in found:
            whole = f"{where}.{name}" if where else name
            raise invalid(f"cannot accept {whole}: it is there twice", param=whole, code="invalidSyntax")
        found[name] = item
    return found


def read_text(value: Any, name: str, *, longest: int = MAX_NAME) -> str | None:
    """Return a text stripped, None when there is none."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid_value(name, "it is not a text")
    try:
        return clean(value, name, longest=longest, empty=True) or None
    except GatewayError as error:
        raise invalid(error.message, param=name, code="invalidValue") from error


def read_address(value: Any, name: str, kept: Collection[str] = ()) -> str | None:
    """Return an e-mail address stripped, otherwise as it was sent; None when there is none.

    One in `kept` is not checked.
    """
    text = read_text(value, name, longest=MAX_EMAIL)
    if text is None or text in kept:
        return text
    try:
        normalise_email(text)
    except GatewayError as error:
        raise invalid_value(name, "it is not a valid e-mail address") from error
    return text


def read_user_name(value: Any, kept: Collection[str] = ()) -> str:
    """Return a user name, which is an e-mail address."""
    return require_text(read_address(value, "userName", kept), "userName")


def require_text(text: str | None, name: str) -> str:
    """Return the text of an attribute that has to have one."""
    if text is None:
        raise invalid_value(name, "it is required")
    return text


def read_external_id(value: Any) -> str | None:
    """Return an external id as it was sent, None when it is taken away."""
    return None if read_text(value, "externalId", longest=MAX_EXTERNAL_ID_CHARACTERS) is None else str(value)


def read_flag(value: Any, name: str) -> bool:
    """Return a boolean; providers send it as a text, too, and as `[{"value": "False"}]`."""
    found = unwrap_value(value)
    if isinstance(found, str):
        found = _FLAGS.get(found.strip().lower())
    if not isinstance(found, bool):
        raise invalid_value(name, "it is neither true nor false")
    return found


def unwrap_value(value: Any) -> Any:
    """Return the x of `[{"value": x}]`, which Entra ID sends for x; anything else as it is."""
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        return value
    return members_by_name(value[0], ("value",)).get("value", value)


def read_email(value: Any, name: str, kept: Collection[str] = ()) -> SentEmail:
    """Return what one element of `emails` says: an object, or the address alone."""
    if isinstance(value, str):
        return SentEmail(read_address(value, f"{name}.value", kept))
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor a text")
    parts = members_by_name(value, ("value", "type", "primary"), name)
    primary = parts.get("primary")
    return SentEmail(
        read_address(parts.get("value"), f"{name}.value", kept),
        read_text(parts.get("type"), f"{name}.type", longest=MAX_TYPE_CHARACTERS),
        None if primary is None else read_flag(primary, f"{name}.primary"),
    )


def read_emails(value: Any, kept: Collection[str] = (), name: str = "emails") -> tuple[SentEmail, ...]:
    """Return the elements of `emails` with their types, each pair of address and type once.

    One object or one address may stand for a list of it. An element with a blank address is none, as
    providers send it for a person without one; an element that has none at all is refused, and so is a second
    primary one. More than 100 are too_large.
    """
    found: dict[tuple[str, str], SentEmail] = {}
    for index, item in enumerate(list_elements(value, name, MAX_EMAILS)):
        where = f"{name}[{index}]"
        email = read_email(item, where, kept)
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
    """Refuse more than one primary address in one message (RFC 7643 section 2.4)."""
    if sum(email.primary is True for email in emails) > 1:
        raise invalid_value(name, "more than one is primary")


@lru_cache(maxsize=MAX_KEPT_KEYS)
def text_key(text: str) -> str:
    """Return the form in which texts of at most 1024 characters are compared in any case.

    The steps of one message compare the same texts again and again.
    """
    return casefold_nfc(text)


def email_key(value: str, kind: str) -> tuple[str, str]:
    """Return what two e-mail addresses of one user differ in."""
    return text_key(value), text_key(kind)


def settle_primary(emails: Sequence[SentEmail]) -> tuple[Email, ...]:
    """Return e-mail addresses with marks: without a primary one, the first that does not say it is none."""
    heir = None
    if not any(email.primary for email in emails):
        heir = next((email for email in emails if email.primary is None), None)
    return tuple(
        Email(email.value or "", email.type or DEFAULT_TYPE, primary=email.primary is True or email is heir)
        for email in emails
    )


def read_members(value: Any, name: str = "members") -> SentMembers:
    """Return members, each once: objects with a `value`, or ids alone, in a list or one.

    Members are users; any other type is refused. More than 10,000 are too_large.
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
        raise invalid_value(f"{name}.type", "a member is a User")
    user_id = require_text(read_text(parts.get("value"), f"{name}.value"), f"{name}.value")
    return user_id, read_display(parts.get("display"))


def read_display(value: Any) -> str | None:
    """Return what a member is called, cut to the length of a name; None when it is nothing to call one.

    Nobody is kept out of a group for it.
    """
    if not isinstance(value, str) or not is_plain(value.strip()):
        return None
    return value.strip()[:MAX_NAME].strip() or None


def list_elements(value: Any, name: str, most: int) -> list[Any]:
    """Return the elements of a multi-valued attribute."""
    if value is None:
        return []
    if isinstance(value, (dict, str)):
        return [value]
    if not isinstance(value, list):
        raise invalid_value(name, "it is not a list")
    if len(value) > most:
        raise too_many(name, most)
    return value
