"""What is shown of a person: what the identity provider said, or what the account tells."""

from dataclasses import replace

from gatewayd.accounts.records import Email, ProviderIdentity, User


def display_identity(user: User) -> ProviderIdentity:
    """Return what the provider sent; for an account made by hand what the account can tell.

    Then the user name is the e-mail address, the given name the display name up to its first blank, and the
    family name the rest. A name without a blank is both: providers want a user with either (Okta's test of
    SCIM servers).
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
    """Return the identity of an account that was given another e-mail address by hand."""
    main = _main(identity)
    if main is None and identity.user_name is not None:
        return replace(identity, emails=(Email(email, primary=True),))
    emails = tuple(replace(each, value=email) if each is main else each for each in identity.emails)
    return replace(identity, emails=emails)


def with_name(identity: ProviderIdentity, name: str) -> ProviderIdentity:
    """Return the identity of an account that was given another display name by hand."""
    return identity if identity.user_name is None else replace(identity, display_name=name)


def _main(identity: ProviderIdentity) -> Email | None:
    """Return the address that is that of the account."""
    return next((each for each in identity.emails if each.primary), next(iter(identity.emails), None))
