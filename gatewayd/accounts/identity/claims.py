"""From the claims of a provider to an external identity."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.providers import ProviderOptions
from gatewayd.accounts.identity.records import (
    MAX_GROUPS_PER_PERSON,
    MAX_ROLES_PER_PERSON,
    ExternalIdentity,
    RefusalCode,
)
from gatewayd.errors import GatewayError

log = logging.getLogger(__name__)

MAX_CLAIM_CHARACTERS: Final = 1024

Claims = Mapping[str, Any]


def is_complete(claims: Claims, options: ProviderOptions) -> bool:
    """Tell whether an id token has every claim that the rules need, so that userinfo is not asked."""
    names, rules = options.claims, options.rules
    needed = [names.email, names.name]
    needed += [names.roles] if rules.roles.is_managed else []
    needed += [names.groups] if rules.groups.is_managed and not _has_overage(claims, names.groups) else []
    return all(_find(claims, name) is not None for name in needed)


def read_identity(
    claims: Claims, userinfo: Claims, options: ProviderOptions, issuer: str
) -> ExternalIdentity:
    """Return the identity; a claim of the id token comes before that of userinfo.

    Raises forbidden (`provider`), naming the claim, for one of a wrong type or size.
    """
    names = options.claims
    merged = {**userinfo, **claims}
    provisioning = _text(merged, names.provisioning) if names.provisioning else ""
    email = _text(merged, names.email)
    # The two belong together: an address is verified only by its own document.
    source = claims if _find(claims, names.email) is not None else userinfo
    return ExternalIdentity(
        provider=options.name,
        issuer=issuer,
        subject=_text(merged, names.subject, is_number=True),
        provisioning_id=provisioning,
        email=email,
        # The claim is about the standard one (OpenID Connect Core 1.0, 5.1), not about a name there.
        email_verified=bool(email) and source.get("email_verified") is True and source.get("email") == email,
        name=_text(merged, names.name),
        picture_url="",
        roles=_roles(merged, options),
        groups=_groups(merged, options),
    )


def _roles(claims: Claims, options: ProviderOptions) -> tuple[str, ...] | None:
    if not options.rules.roles.is_managed:
        return None
    name = options.claims.roles
    found = _list(claims, name, options.claims.role_separator, MAX_ROLES_PER_PERSON)
    if found is None:
        log.warning("claim of roles missing", extra={"provider": options.name, "claim": name})
    return found


def _groups(claims: Claims, options: ProviderOptions) -> tuple[str, ...] | None:
    if not options.rules.groups.is_managed:
        return None
    names = options.claims
    found = _list(claims, names.groups, names.group_separator, MAX_GROUPS_PER_PERSON)
    if found is not None:
        return found
    if _has_overage(claims, names.groups):
        log.warning(
            "groups not known: the person is in more than the token can hold; let the provider send only the"
            " groups that are assigned to the application",
            extra={"provider": options.name},
        )
        return None
    return () if names.absent_groups_are_none else None


def _has_overage(claims: Claims, name: str) -> bool:
    """Tell whether the provider left the groups out because there are too many (Entra)."""
    elsewhere = claims.get("_claim_names")
    return claims.get("hasgroups") is True or (isinstance(elsewhere, dict) and name in elsewhere)


def _find(claims: Claims, name: str) -> Any:
    """Return a claim, by its whole name or as a path of names; None without it."""
    if name in claims:
        return claims[name]
    found: Any = dict(claims)
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _text(claims: Claims, name: str, *, is_number: bool = False) -> str:
    value = _find(claims, name)
    if value is None:
        return ""
    if is_number and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise _bad(name, "it is not a text")
    if len(value) > MAX_CLAIM_CHARACTERS:
        raise _bad(name, f"it has more than {MAX_CLAIM_CHARACTERS} characters")
    return value


def _list(claims: Claims, name: str, separator: str, longest: int) -> tuple[str, ...] | None:
    value = _find(claims, name)
    if value is None:
        return None
    items: Sequence[Any] = value.split(separator) if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise _bad(name, "it is not a list of texts")
    if len(items) > longest or any(len(item) > MAX_CLAIM_CHARACTERS for item in items):
        raise _bad(name, f"it has more than {longest} elements, or a too long one")
    return tuple(dict.fromkeys(item.strip() for item in items if item.strip()))


def _bad(name: str, reason: str) -> GatewayError:
    return refuse(RefusalCode.PROVIDER, f"the claim {name!r} cannot be used: {reason}")
