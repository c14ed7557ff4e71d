"""What PATCH operations make of a user's e-mail addresses (RFC 7644 section 3.5.2).

Each pair of address and type is there once. At most one is primary: marking one takes the mark from the
others, and when the primary one goes, the first one left takes its place. One that is said not to be primary
is not.
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
"""The code of the error for a step that selects nothing, and does not say what to make."""

MAX_PART_CHARACTERS: Final = 1024
"""Characters of a text by which a value is described."""

_PARTS: Final = ("value", "type", "primary")


def patched_emails(emails: Emails, step: PatchStep, kept: Collection[str] = ()) -> Emails:
    """Return the addresses after one step.

    A part without a filter is that of the primary address, else of the first, which is made when there is
    none. What a filter selects keeps the parts that are not sent. When it selects nothing, and only says what
    parts are equal to, an address with these parts is made, as Entra ID expects; otherwise that is
    invalid_request, code `noTarget`. To remove what is not there is no error. Addresses in
    `kept` are not checked.
    """
    if step.verb is PatchVerb.ADD and step.value is None:
        return emails
    if step.where is None and step.part is None:
        return _whole(emails, step, kept)
    chosen = _chosen(emails, step.where)
    if _is_removal(step):
        return _without(emails, chosen)
    sent = _sent(step, kept)
    if chosen:
        return _changed(emails, chosen, sent)
    return emails if step.verb is PatchVerb.REMOVE else _added(emails, (_made(step, sent, kept),))


def _whole(emails: Emails, step: PatchStep, kept: Collection[str]) -> Emails:
    match step.verb:
        case PatchVerb.ADD:
            return _added(emails, read_emails(step.value, kept))
        case PatchVerb.REPLACE:
            return settle_primary(read_emails(step.value, kept))
        case PatchVerb.REMOVE:
            return () if step.value is None else _taken(emails, step.value)


def _chosen(emails: Emails, where: FilterExpression | None) -> frozenset[int]:
    """Return the places of the addresses that a step is about."""
    if where is None:
        primary = next((index for index, email in enumerate(emails) if email.primary), 0)
        return frozenset({primary} if emails else ())
    selects = compile_selector(where, ResourceType.USER, "emails")
    return frozenset(index for index, email in enumerate(emails) if selects(_parts(email)))


def _is_removal(step: PatchStep) -> bool:
    """Tell whether a step leaves nothing of what it is about: an address is what its value is."""
    if step.part not in (None, "value"):
        return False
    if step.part is None:
        value = only_element(step.value)
        said = members_by_name(value, ("value",)).get("value", value) if isinstance(value, dict) else value
    else:
        said = unwrap_value(step.value)
    return step.verb is PatchVerb.REMOVE or said is None or (isinstance(said, str) and not said.strip())


def only_element(value: Any) -> Any:
    """Return the only element of a list: one value is written with and without."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _sent(step: PatchStep, kept: Collection[str]) -> SentEmail:
    """Return what a step writes; to remove a type or a mark is to write the usual one."""
    name = step.place.name
    if step.part is None:
        return read_email(only_element(step.value), name, kept)
    value = None if step.verb is PatchVerb.REMOVE else unwrap_value(step.value)
    if step.part == "value":
        return SentEmail(value=read_address(value, name, kept))
    if step.part == "type":
        return SentEmail(type=read_text(value, name, longest=MAX_TYPE_CHARACTERS) or DEFAULT_TYPE)
    return SentEmail(primary=value is not None and read_flag(value, name))


def _added(emails: Emails, sent: Iterable[SentEmail]) -> Emails:
    """Return the addresses with others; of one that is there already only the mark may change."""
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
    """Return the addresses with what was sent written to the chosen ones."""
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
    """Return the place of the one address that becomes primary."""
    keys = {email_key(emails[index].value, emails[index].type) for index in chosen}
    check_one_primary([SentEmail(primary=True)] * len(keys))
    return min(chosen)


def _made(step: PatchStep, sent: SentEmail, kept: Collection[str]) -> SentEmail:
    """Return the address that a step makes when its filter selects none."""
    name = step.place.name
    wanted: dict[str, Any] = {} if step.where is None else equalities(step.where, "emails")
    for part in _PARTS:
        value = getattr(sent, part)
        if value is None:
            continue
        if not is_same(wanted.setdefault(part, value), value):
            raise _no_target(name)
    made = read_email(wanted, "emails", kept)
    if made.value is None:
        raise _no_target(name)
    return made


def equalities(node: FilterExpression, attribute: str) -> dict[str, Any]:
    """Return what a filter says that parts are; it may say no more than that."""
    nodes = node.nodes if isinstance(node, Conjunction) else (node,)
    said: dict[str, Any] = {}
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
            if not is_same(said.setdefault(part, value), value):
                raise _no_target(attribute)
    return said


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal but for the case of texts."""
    return casefold_nfc(str(one)) == casefold_nfc(str(other))


def _taken(emails: Emails, value: Any) -> Emails:
    """Return the addresses without those that a list describes, each by as many parts as it likes."""
    wanted = [
        describing_parts(item, f"emails[{index}]")
        for index, item in enumerate(list_elements(value, "emails", MAX_EMAILS))
    ]
    return _without(emails, matching_indexes(wanted, map(_parts, emails)))


def matching_indexes(
    wanted: Iterable[Mapping[str, Any]], values: Iterable[Mapping[str, Any]]
) -> frozenset[int]:
    """Return the places of the values that have all parts of one of those that are wanted, in any case."""
    keys = [{part: text_key(str(item)) for part, item in each.items()} for each in wanted]
    found = [{part: text_key(str(item)) for part, item in each.items()} for each in values]
    return frozenset(
        place for place, parts in enumerate(found) if any(key.items() <= parts.items() for key in keys)
    )


def describing_parts(value: Any, name: str, names: Sequence[str] = _PARTS) -> dict[str, Any]:
    """Return the parts by which a value of a multi-valued attribute is described."""
    if isinstance(value, str):
        value = {"value": value}
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor a text")
    parts = {part: item for part, item in members_by_name(value, names, name).items() if item is not None}
    if not parts:
        raise invalid_value(name, "it does not say which one")
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
    """Return the addresses but the chosen ones; the first one left follows the primary one."""
    left = [email for index, email in enumerate(emails) if index not in chosen]
    if left and any(emails[index].primary for index in chosen):
        left[0] = replace(left[0], primary=True)
    return tuple(left)


def _tidy(emails: Iterable[Email]) -> Emails:
    """Return each pair of address and type once, primary when one of them was."""
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
    message = f"cannot change {name}: nothing is selected, and it is not said what to make"
    return invalid(message, param=name, code=NO_TARGET)
