"""`gatewayctl user`: accounts."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, ProviderName, Session, UserRef, Yes
from gatewayctl.prompts import ask_password, confirm, read_secret, usage
from gatewayctl.render import Output, View
from gatewayctl.values import by_name, parse_duration
from gatewayctl.wire import routes
from gatewayctl.wire.invitations import InvitationWritten, NewInvitation, NewSignInLink, SignInAddress
from gatewayctl.wire.scim import Link, Unlink
from gatewayctl.wire.users import (
    NewUser,
    PasswordChange,
    RoleName,
    User,
    UserChange,
    UserIdentity,
    UserSession,
    UserWritten,
)

noun = Noun("Accounts: people and programs that may use the gateway.")


def _storage(user: User) -> str | None:
    if user.storage_bytes is None:
        return None
    left = "" if user.storage_left_bytes is None else f", {user.storage_left_bytes} left"
    return f"{user.storage_bytes} bytes{left}"


ROWS: View[User] = View(
    name=lambda user: user.email,
    columns={
        "EMAIL": lambda user: user.email,
        "NAME": lambda user: user.name,
        "ROLE": lambda user: user.role,
        "ACTIVE": lambda user: user.active,
        "GROUPS": lambda user: user.groups,
        "LAST ACTIVE": lambda user: user.last_active_at,
        "ID": lambda user: user.id,
    },
)
DETAIL: View[User] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "USERNAME": lambda user: user.username,
        "SCIM NAME": lambda user: user.user_name,
        "EXTERNAL IDS": lambda user: by_name(user.external_ids),
        "SUBJECTS": lambda user: by_name(user.subjects),
        "FILES": _storage,
        "CREATED": lambda user: user.created_at,
        "UPDATED": lambda user: user.updated_at,
    },
)
WRITTEN: View[UserWritten] = View(name=lambda user: user.email, columns={})
SECRET: View[UserWritten] = View(name=lambda user: user.password or user.email, columns={})

IDENTITY_ROWS: View[UserIdentity] = View(
    name=lambda found: found.provider,
    columns={
        "PROVIDER": lambda found: found.provider,
        "EMAIL": lambda found: found.email,
        "SUBJECT": lambda found: found.subject,
        "PROVISIONING ID": lambda found: found.provisioning_id,
        "ISSUER": lambda found: found.issuer,
        "LINKED": lambda found: found.linked_at,
        "LAST SIGN-IN": lambda found: found.used_at,
    },
)
SESSION_ROWS: View[UserSession] = View(
    name=lambda found: found.id,
    columns={
        "ID": lambda found: found.id,
        "METHOD": lambda found: found.method,
        "PROVIDER": lambda found: found.provider,
        "ADDRESS": lambda found: found.address,
        "BROWSER": lambda found: found.user_agent,
        "CREATED": lambda found: found.created_at,
        "LAST SEEN": lambda found: found.last_seen_at,
        "EXPIRES": lambda found: found.expires_at,
    },
)

INVITED: View[InvitationWritten] = View(
    name=lambda row: row.address or row.email,
    columns={
        "EMAIL": lambda row: row.email,
        "ROLE": lambda row: row.role,
        "GROUPS": lambda row: row.groups,
        "EXPIRES": lambda row: row.expires_at,
        "LINK": lambda row: row.address,
    },
)
SIGN_IN_LINK: View[SignInAddress] = View(
    name=lambda row: row.address,
    columns={
        "USER": lambda row: row.user,
        "EXPIRES": lambda row: row.expires_at,
        "LINK": lambda row: row.address,
    },
)

Email = Annotated[str, typer.Option("--email", help="E-mail address of the user, which is the sign-in name.")]
Name = Annotated[str | None, typer.Option("--name", help="Display name of the user.")]
Role = Annotated[RoleName | None, typer.Option("--role", help="Role of the user.")]
Username = Annotated[
    str | None, typer.Option("--username", help="Short name of the user; an empty one removes it.")
]
PasswordFile = Annotated[
    str | None,
    typer.Option(
        "--password-file", metavar="FILE", help="Read the password from FILE; - reads standard input."
    ),
]
Generate = Annotated[bool, typer.Option("--generate", help="Generate a password and print it once.")]


@noun.verb("list", "gatewayctl user list", "gatewayctl user list --query example.org -o name")
def list_users(
    session: Session,
    query: Annotated[
        str, typer.Option("--query", help="List only users with this text in name or e-mail address.")
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of users to list.")
    ] = None,
) -> None:
    """List accounts, oldest first."""
    session.show_all(session.client.call(routes.LIST_USERS, query=query or None, limit=limit).users, ROWS)


@noun.verb("show", "gatewayctl user show ada@example.org -o json")
def show(session: Session, user: UserRef) -> None:
    """Show one account."""
    session.show(session.client.call(routes.GET_USER, user), DETAIL)


@noun.verb(
    "create",
    "gatewayctl user create --email ada@example.org --name 'Ada L' --generate",
    "gatewayctl user create --email bot@example.org --role user --password-file - < secret",
)
def create(
    session: Session,
    email: Email,
    name: Name = None,
    role: Role = None,
    username: Username = None,
    password_file: PasswordFile = None,
    generate: Generate = False,
    dry_run: DryRun = False,
) -> None:
    """Create an account; without a password nobody can sign in to it, but it can have keys."""
    request = _new_user(email, name, role, username)
    _add_password(request, password_file, generate=generate)
    show_written(session, session.client.call(routes.CREATE_USER, body=request, dry_run=dry_run))


@noun.verb("ensure", "gatewayctl user ensure --email ada@example.org --role admin")
def ensure(
    session: Session,
    email: Email,
    name: Name = None,
    role: Role = None,
    username: Username = None,
    password_file: PasswordFile = None,
    dry_run: DryRun = False,
) -> None:
    """Create an account, or bring the one with this address into the given state.

    Tells created, changed or unchanged. What is not given stays as it is.
    """
    request = _new_user(email, name, role, username)
    _add_password(request, password_file, generate=False)
    show_written(session, session.client.call(routes.ENSURE_USER, body=request, dry_run=dry_run))


@noun.verb("change", "gatewayctl user change ada@example.org --role admin")
def change(
    session: Session,
    user: UserRef,
    email: Annotated[str | None, typer.Option("--email", help="New e-mail address of the user.")] = None,
    name: Name = None,
    role: Role = None,
    username: Username = None,
    dry_run: DryRun = False,
) -> None:
    """Change an account; fields that are not given stay."""
    fields = {"email": email, "name": name, "role": role, "username": username}
    given = {key: value for key, value in fields.items() if value is not None}
    if not given:
        raise usage("cannot change the user: nothing to change was given")
    request = UserChange.model_validate(given)
    show_written(session, session.client.call(routes.CHANGE_USER, user, body=request, dry_run=dry_run))


@noun.verb("remove", "gatewayctl user remove ada@example.org --yes")
def remove(session: Session, user: UserRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete an account with its keys, memberships and chats; its files and collections stay.

    `gatewayctl file list --orphaned` and `gatewayctl collection list --orphaned` show what it left.
    """
    confirm(f"Remove the user {user}?", yes=yes or dry_run)
    show_written(session, session.client.call(routes.REMOVE_USER, user, dry_run=dry_run))


@noun.verb(
    "password",
    "gatewayctl user password ada@example.org --generate -o name",
    "gatewayctl user password ada@example.org --password-file - < secret",
)
def password(
    session: Session,
    user: UserRef,
    password_file: PasswordFile = None,
    generate: Generate = False,
    dry_run: DryRun = False,
) -> None:
    """Set a new password of a user, which ends their sessions; without a file it is asked for."""
    request = PasswordChange()
    _add_password(request, password_file, generate=generate)
    if password_file is None and not generate:
        request.password = ask_password()
    show_written(session, session.client.call(routes.SET_PASSWORD, user, body=request, dry_run=dry_run))


@noun.verb("deactivate", "gatewayctl user deactivate ada@example.org")
def deactivate(session: Session, user: UserRef, dry_run: DryRun = False) -> None:
    """Deactivate a user: sessions end and keys are refused at once; data is kept.

    The keys work again when it is unlocked.
    """
    show_written(
        session, session.client.call(routes.CHANGE_USER, user, body=UserChange(active=False), dry_run=dry_run)
    )


@noun.verb("activate", "gatewayctl user activate ada@example.org")
def activate(session: Session, user: UserRef, dry_run: DryRun = False) -> None:
    """Activate a user."""
    show_written(
        session, session.client.call(routes.CHANGE_USER, user, body=UserChange(active=True), dry_run=dry_run)
    )


@noun.verb(
    "invite",
    "gatewayctl user invite ada@example.org --group research",
    "gatewayctl user invite ada@example.org --expires 48h -o name",
)
def invite(
    session: Session,
    email: Annotated[
        str, typer.Argument(metavar="EMAIL", help="E-mail address of the person, who has no account yet.")
    ],
    role: Role = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="Group of the new user, id or name; repeatable."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="Lifetime of the link, 7d if not given; at most 90d."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Invite a person: print a link, this once, by which they create their account.

    The link works once. Send it to the person; the gateway sends no mail. With -o name it is printed alone.
    """
    request = NewInvitation(email=email, role=role, groups=group or [])
    if expires is not None:
        request.expires_in = parse_duration(expires)
    row = session.client.call(routes.CREATE_INVITATION, body=request, dry_run=dry_run)
    session.show(row, INVITED)
    session.note("The link is not shown again.")


@noun.verb("sign-in-link", "gatewayctl user sign-in-link ada@example.org -o name")
def sign_in_link(
    session: Session,
    user: UserRef,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="Lifetime of the link, 1h if not given; at most 7d."),
    ] = None,
) -> None:
    """Print a link that signs in to the account of a user, once; it replaces an earlier one.

    Whoever has the link is signed in, without the password.
    """
    request = NewSignInLink()
    if expires is not None:
        request.expires_in = parse_duration(expires)
    session.show(session.client.call(routes.CREATE_SIGN_IN_LINK, user, body=request), SIGN_IN_LINK)


@noun.verb("identities", "gatewayctl user identities ada@example.org")
def list_identities(session: Session, user: UserRef) -> None:
    """List the identity providers by which a user has signed in, or that they have linked."""
    session.show_all(session.client.call(routes.LIST_IDENTITIES, user).identities, IDENTITY_ROWS)


@noun.verb("remove-identity", "gatewayctl user remove-identity ada@example.org oidc")
def remove_identity(
    session: Session,
    user: UserRef,
    provider: Annotated[str, typer.Argument(help="Name of the identity provider.", show_default=False)],
    dry_run: DryRun = False,
) -> None:
    """Unlink a user from an identity provider; sessions that began there end."""
    show_written(session, session.client.call(routes.REMOVE_IDENTITY, user, provider, dry_run=dry_run))


@noun.verb("sessions", "gatewayctl user sessions ada@example.org")
def list_sessions(session: Session, user: UserRef) -> None:
    """List the sessions of a user, newest first: each sign-in that is still valid."""
    session.show_all(session.client.call(routes.LIST_SESSIONS, user).sessions, SESSION_ROWS)


@noun.verb("end-sessions", "gatewayctl user end-sessions ada@example.org")
def end_sessions(session: Session, user: UserRef, dry_run: DryRun = False) -> None:
    """End every session of a user at once, which signs them out everywhere; their keys stay valid."""
    show_written(session, session.client.call(routes.END_SESSIONS, user, dry_run=dry_run))


@noun.verb(
    "link",
    "gatewayctl user link ada@example.org --external-id 00u1ab2c",
    "gatewayctl user link ada@example.org --provider okta --oauth-subject 00u1ab2c",
)
def link(
    session: Session,
    user: UserRef,
    external_id: Annotated[
        str | None,
        typer.Option("--external-id", metavar="ID", help="External id of the user at the provider."),
    ] = None,
    oauth_subject: Annotated[
        str | None,
        typer.Option("--oauth-subject", metavar="SUB", help="OAuth subject by which SCIM finds the user."),
    ] = None,
    provider: ProviderName = None,
    dry_run: DryRun = False,
) -> None:
    """Link a user to their id at an identity provider, by which SCIM finds them.

    A provider has one external id and one subject for an account; what was there before is replaced.
    """
    if not (external_id or oauth_subject):
        raise usage("cannot link the user: add --external-id or --oauth-subject", param="--external-id")
    request = Link(external_id=external_id, oauth_subject=oauth_subject, provider=provider)
    show_written(session, session.client.call(routes.LINK_USER, user, body=request, dry_run=dry_run))


@noun.verb("unlink", "gatewayctl user unlink ada@example.org --external-id")
def unlink(
    session: Session,
    user: UserRef,
    external_id: Annotated[bool, typer.Option("--external-id", help="Unlink only the external id.")] = False,
    oauth_subject: Annotated[
        bool, typer.Option("--oauth-subject", help="Unlink only the OAuth subject.")
    ] = False,
    provider: ProviderName = None,
    dry_run: DryRun = False,
) -> None:
    """Unlink a user from an identity provider: remove external id and OAuth subject."""
    is_both = external_id == oauth_subject
    request = Unlink(
        external_id=external_id or is_both, oauth_subject=oauth_subject or is_both, provider=provider
    )
    show_written(session, session.client.call(routes.UNLINK_USER, user, body=request, dry_run=dry_run))


def show_written(session: Session, row: UserWritten) -> None:
    """Show the result of a write, and a generated password once."""
    view = SECRET if session.output is Output.NAME else WRITTEN
    session.written(row, view, "user")
    if row.password is not None and session.output is Output.TABLE:
        session.renderer.say(f"password {row.password}")
        session.note("The password is not shown again.")


def _new_user(email: str, name: str | None, role: RoleName | None, username: str | None) -> NewUser:
    fields = {"name": name, "role": role, "username": username}
    return NewUser.model_validate(
        {"email": email, **{key: value for key, value in fields.items() if value is not None}}
    )


def _add_password(request: NewUser | PasswordChange, source: str | None, *, generate: bool) -> None:
    if source is not None and generate:
        raise usage("cannot use --password-file together with --generate", param="--generate")
    if source is not None:
        request.password = read_secret(source, "--password-file")
    if generate:
        request.generate_password = True
