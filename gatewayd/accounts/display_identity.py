"""Display identity of an account: the data of its identity provider, or data derived from the account."""

from dataclasses import replace

from gatewayd.accounts.records import Email, ProviderIdentity, User


def display_identity(user: User) -> ProviderIdentity:
    """Return the identity that the provider sent, or derive one for an account that no provider made.

    A derived user name is the e-mail address, the given name is the display name up to its first blank, and
    the family name is the rest. A name without a blank is both: providers expect both names (Okta's test
    suite for SCIM servers).
    """
    if user.identity.user_name is not None:
        return user.identity
    given, _, family = user.name.partition(" ")
    return ProviderIdentity(
        user_name=user.email,
        display_name=user.name,
        formatted_name=user.name,
        given_name=given or None,
        family_name=family.strip() or given or None,
        emails=(Email(user.email, primary=True),),
    )


def address_of(identity: ProviderIdentity) -> str:
    """Return the e-mail address of an account: the primary one, else the first, else the user name."""
    email = _main(identity)
    return (identity.user_name or "") if email is None else email.value


def with_email(identity: ProviderIdentity, email: str) -> ProviderIdentity:
    """Return the identity after a change of the e-mail address by an administrator or user."""
    main = _main(identity)
    if main is None and identity.user_name is not None:
        return replace(identity, emails=(Email(email, primary=True),))
    emails = tuple(replace(each, value=email) if each is main else each for each in identity.emails)
    return replace(identity, emails=emails)


def with_name(identity: ProviderIdentity, name: str) -> ProviderIdentity:
    """Return the identity after a change of the display name by an administrator or user."""
    return identity if identity.user_name is None else replace(identity, display_name=name)


def _main(identity: ProviderIdentity) -> Email | None:
    """Return the primary address, else the first."""
    return next((each for each in identity.emails if each.primary), next(iter(identity.emails), None))
