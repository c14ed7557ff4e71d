"""PATCH of the e-mail addresses of a user (RFC 7644 section 3.5.2).

Each pair of address and type is unique. At most one address is primary: a new primary address replaces the
former one, and after a removal of the primary address the first remaining one is primary. An address with an
explicit `primary: false` stays without the mark.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd.accounts.records import Email
from gatewayd.errors import GatewayError, invalid
from gatewayd.scim.filters.conditions import Operator
from gatewayd.scim.filters.syntax import AttributeComparison, Conjunction, FilterExpression
from gatewayd.scim.input_records import PatchVerb
from gatewayd.scim.patch.steps import PatchStep
from gatewayd.scim.patch.value_selection import compile_selector
from gatewayd.scim.records import ResourceType
from gatewayd.scim.values import (
    DEFAULT_TYPE,
    MAX_EMAILS,
    MAX_TYPE_CHARACTERS,
    SentEmail,
    check_one_primary,
    email_key,
    invalid_value,
    list_elements,
    members_by_name,
    read_address,
    read_email,
    read_emails,
    read_flag,
    read_text,
    settle_primary,
    text_key,
    too_many,
    unwrap_value,
)
from gatewayd.text import casefold_nfc

Emails = tuple[Email, ...]

NO_TARGET: Final = "noTarget"
"""Error code of a step that selects no value and does not describe a new one."""

MAX_PART_CHARACTERS: Final = 1024
"""Maximum characters of a sub-attribute that describes a value."""

_PARTS: Final = ("value", "type", "primary")


def patched_emails(emails: Emails, step: PatchStep, exempt: Collection[str] = ()) -> Emails:
    """Return the addresses after one step.

    A sub-attribute without a filter belongs to the primary address, else to the first, which is created if
    absent. Selected addresses keep the sub-attributes that are not sent. If a filter selects nothing and
    consists of equalities only, an address with these sub-attributes is created, as Entra ID expects;
    otherwise the error is invalid_request, code `noTarget`. Removing an absent address is no error. Addresses
    in `exempt` are not checked.
    """
    if step.verb is PatchVerb.ADD and step.value is None:
        return emails
    if step.where is None and step.part is None:
        return _whole(emails, step, exempt)
    chosen = _chosen(emails, step.where)
    if _is_removal(step):
        return _without(emails, chosen)
    sent = _sent(step, exempt)
    if chosen:
        return _changed(emails, chosen, sent)
    return emails if step.verb is PatchVerb.REMOVE else _added(emails, (_made(step, sent, exempt),))


def _whole(emails: Emails, step: PatchStep, exempt: Collection[str]) -> Emails:
    match step.verb:
        case PatchVerb.ADD:
            return _added(emails, read_emails(step.value, exempt))
        case PatchVerb.REPLACE:
            return settle_primary(read_emails(step.value, exempt))
        case PatchVerb.REMOVE:
            return () if step.value is None else _taken(emails, step.value)


def _chosen(emails: Emails, where: FilterExpression | None) -> frozenset[int]:
    """Return the indexes of the addresses that a step selects."""
    if where is None:
        primary = next((index for index, email in enumerate(emails) if email.primary), 0)
        return frozenset({primary} if emails else ())
    selects = compile_selector(where, ResourceType.USER, "emails")
    return frozenset(index for index, email in enumerate(emails) if selects(_parts(email)))


def _is_removal(step: PatchStep) -> bool:
    """Tell whether a step removes the selected addresses: an address without a value is removed."""
    if step.part not in (None, "value"):
        return False
    if step.part is None:
        value = only_element(step.value)
        sent = members_by_name(value, ("value",)).get("value", value) if isinstance(value, dict) else value
    else:
        sent = unwrap_value(step.value)
    return step.verb is PatchVerb.REMOVE or sent is None or (isinstance(sent, str) and not sent.strip())


def only_element(value: Any) -> Any:
    """Return the element of a list of one, else the value itself: clients send both forms."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _sent(step: PatchStep, exempt: Collection[str]) -> SentEmail:
    """Return the sub-attributes that a step writes; removing `type` or `primary` writes the default."""
    name = step.target.name
    if step.part is None:
        return read_email(only_element(step.value), name, exempt)
    value = None if step.verb is PatchVerb.REMOVE else unwrap_value(step.value)
    if step.part == "value":
        return SentEmail(value=read_address(value, name, exempt))
    if step.part == "type":
        return SentEmail(type=read_text(value, name, longest=MAX_TYPE_CHARACTERS) or DEFAULT_TYPE)
    return SentEmail(primary=value is not None and read_flag(value, name))


def _added(emails: Emails, sent: Iterable[SentEmail]) -> Emails:
    """Return the addresses with further ones; for an existing address only `primary` may change."""
    if not emails:
        return settle_primary(tuple(sent))
    found = {email_key(email.value, email.type): email for email in emails}
    for each in sent:
        email = Email(each.value or "", each.type or DEFAULT_TYPE)
        key = email_key(email.value, email.type)
        found.setdefault(key, email)
        if each.primary:
            found = {other: replace(email, primary=other == key) for other, email in found.items()}
        elif each.primary is False:
            found[key] = replace(found[key], primary=False)
    return _tidy(found.values())


def _changed(emails: Emails, chosen: frozenset[int], sent: SentEmail) -> Emails:
    """Return the addresses, with the sent sub-attributes written to the chosen ones."""
    changed = list(emails)
    for index in chosen:
        email = emails[index]
        changed[index] = replace(email, value=sent.value or email.value, type=sent.type or email.type)
    if sent.primary:
        marked = _marked(changed, chosen)
        changed = [replace(email, primary=index == marked) for index, email in enumerate(changed)]
    elif sent.primary is False:
        changed = [
            replace(email, primary=email.primary and index not in chosen)
            for index, email in enumerate(changed)
        ]
    return _tidy(changed)


def _marked(emails: Sequence[Email], chosen: frozenset[int]) -> int:
    """Return the index of the address that becomes primary; refuse several different ones."""
    keys = {email_key(emails[index].value, emails[index].type) for index in chosen}
    check_one_primary([SentEmail(primary=True)] * len(keys))
    return min(chosen)


def _made(step: PatchStep, sent: SentEmail, exempt: Collection[str]) -> SentEmail:
    """Return the address that a step creates if its filter selects none."""
    name = step.target.name
    wanted: dict[str, Any] = {} if step.where is None else equalities(step.where, "emails")
    for part in _PARTS:
        value = getattr(sent, part)
        if value is None:
            continue
        if not is_same(wanted.setdefault(part, value), value):
            raise _no_target(name)
    made = read_email(wanted, "emails", exempt)
    if made.value is None:
        raise _no_target(name)
    return made


def equalities(node: FilterExpression, attribute: str) -> dict[str, Any]:
    """Return sub-attribute -> value of a filter of equalities; raise noTarget for another filter."""
    nodes = node.nodes if isinstance(node, Conjunction) else (node,)
    equal: dict[str, Any] = {}
    for each in nodes:
        if isinstance(each, Conjunction):
            found = equalities(each, attribute)
        elif (
            isinstance(each, AttributeComparison)
            and each.operator is Operator.EQ
            and each.value not in (None, "")
        ):
            found = {(each.name.part or each.name.attribute).lower(): each.value}
        else:
            raise _no_target(attribute)
        for part, value in found.items():
            if not is_same(equal.setdefault(part, value), value):
                raise _no_target(attribute)
    return equal


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, texts in any case."""
    return casefold_nfc(str(one)) == casefold_nfc(str(other))


def _taken(emails: Emails, value: Any) -> Emails:
    """Return the addresses without those that a list describes by any of their sub-attributes."""
    wanted = [
        describing_parts(item, f"emails[{index}]")
        for index, item in enumerate(list_elements(value, "emails", MAX_EMAILS))
    ]
    return _without(emails, matching_indexes(wanted, map(_parts, emails)))


def matching_indexes(
    wanted: Iterable[Mapping[str, Any]], values: Iterable[Mapping[str, Any]]
) -> frozenset[int]:
    """Return the indexes of the values that match all parts of an element of `wanted`, in any case."""
    keys = [{part: text_key(str(item)) for part, item in each.items()} for each in wanted]
    found = [{part: text_key(str(item)) for part, item in each.items()} for each in values]
    return frozenset(
        place for place, parts in enumerate(found) if any(key.items() <= parts.items() for key in keys)
    )


def describing_parts(value: Any, name: str, names: Sequence[str] = _PARTS) -> dict[str, Any]:
    """Return the sub-attributes that describe a value of a multi-valued attribute."""
    if isinstance(value, str):
        value = {"value": value}
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor a text")
    parts = {part: item for part, item in members_by_name(value, names, name).items() if item is not None}
    if not parts:
        raise invalid_value(name, "it has no sub-attribute that selects a value")
    for part, item in parts.items():
        where = f"{name}.{part}"
        parts[part] = (
            read_flag(item, where)
            if part == "primary"
            else read_text(item, where, longest=MAX_PART_CHARACTERS)
        )
        parts[part] = "" if parts[part] is None else parts[part]
    return parts


def _without(emails: Emails, chosen: frozenset[int]) -> Emails:
    """Return the addresses without the chosen ones; the first remaining one replaces a primary one."""
    left = [email for index, email in enumerate(emails) if index not in chosen]
    if left and any(emails[index].primary for index in chosen):
        left[0] = replace(left[0], primary=True)
    return tuple(left)


def _tidy(emails: Iterable[Email]) -> Emails:
    """Return each pair of address and type once, primary if one of its duplicates is."""
    found: dict[tuple[str, str], Email] = {}
    for email in emails:
        before = found.setdefault(email_key(email.value, email.type), email)
        if email.primary and not before.primary:
            found[email_key(email.value, email.type)] = replace(before, primary=True)
    if len(found) > MAX_EMAILS:
        raise too_many("emails", MAX_EMAILS)
    return tuple(found.values())


def _parts(email: Email) -> Mapping[str, Any]:
    return {"value": email.value, "type": email.type, "primary": email.primary}


def _no_target(name: str) -> GatewayError:
    message = f"cannot change {name}: the filter selects nothing and does not describe a new value"
    return invalid(message, param=name, code=NO_TARGET)
