"""`gatewayctl group`: groups of users and their members."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, GroupRef, Noun, ProviderName, Session, Yes
from gatewayctl.commands.users import ROWS as USER_ROWS
from gatewayctl.prompts import confirm, usage
from gatewayctl.render import View
from gatewayctl.values import by_name, parse_flags, tree_of
from gatewayctl.wire import routes
from gatewayctl.wire.groups import (
    Group,
    GroupChange,
    GroupMembers,
    GroupWritten,
    Member,
    NewGroup,
    RemovedMembers,
    SourceName,
)
from gatewayctl.wire.scim import Link, Unlink

noun = Noun("Groups of accounts, and the permissions that they add.")


def _granted(group: Group) -> list[str]:
    leaves = ((section, leaf) for section, tree in group.permissions.items() for leaf in tree if tree[leaf])
    return [f"{section}.{leaf}" for section, leaf in leaves]


ROWS: View[Group] = View(
    name=lambda group: group.name,
    columns={
        "NAME": lambda group: group.name,
        "MEMBERS": lambda group: group.member_count,
        "PERMISSIONS": _granted,
        "DESCRIPTION": lambda group: group.description,
        "EXTERNAL IDS": lambda group: by_name(group.external_ids),
        "ID": lambda group: group.id,
    },
)
DETAIL: View[Group] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "SOURCES": lambda group: by_name(group.sources),
        "CREATED": lambda group: group.created_at,
        "UPDATED": lambda group: group.updated_at,
    },
)
MEMBERS: View[Member] = View(
    name=USER_ROWS.name,
    columns={
        "EMAIL": lambda user: user.email,
        "NAME": lambda user: user.name,
        "ROLE": lambda user: user.role,
        "ACTIVE": lambda user: user.active,
        "SOURCES": lambda user: user.sources,
        "ID": lambda user: user.id,
    },
)
WRITTEN: View[GroupWritten] = View(name=lambda group: group.name, columns={})

Description = Annotated[str | None, typer.Option("--description", help="Description of the group.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="PERMISSION", help="Permission that the group adds, for example features.api_keys."
    ),
]
UserRefs = Annotated[
    list[str],
    typer.Argument(metavar="USER", help="Ids or e-mail addresses of the users."),
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")]


@noun.verb("list", "gatewayctl group list", "gatewayctl group list --user ada@example.org")
def list_groups(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only the groups of this user.")
    ] = None,
) -> None:
    """List groups by name."""
    session.show_all(session.client.call(routes.LIST_GROUPS, user=user).groups, ROWS)


@noun.verb("show", "gatewayctl group show api-users")
def show(session: Session, group: GroupRef) -> None:
    """Show one group."""
    session.show(session.client.call(routes.GET_GROUP, group), DETAIL)


@noun.verb("create", "gatewayctl group create api-users --allow features.api_keys")
def create(
    session: Session,
    name: NewName,
    description: Description = None,
    allow: Allow = None,
    dry_run: DryRun = False,
) -> None:
    """Create a group."""
    request = _new_group(name, description, allow)
    session.written(session.client.call(routes.CREATE_GROUP, body=request, dry_run=dry_run), WRITTEN, "group")


@noun.verb("ensure", "gatewayctl group ensure api-users --allow features.api_keys")
def ensure(
    session: Session,
    name: NewName,
    description: Description = None,
    allow: Allow = None,
    dry_run: DryRun = False,
) -> None:
    """Create a group, or bring the group with this name into the given state.

    Tells created, changed or unchanged. What is not given stays as it is.
    """
    request = _new_group(name, description, allow)
    session.written(session.client.call(routes.ENSURE_GROUP, body=request, dry_run=dry_run), WRITTEN, "group")


@noun.verb("change", "gatewayctl group change api-users --name key-holders")
def change(
    session: Session,
    group: GroupRef,
    name: Annotated[str | None, typer.Option("--name", help="New name of the group.")] = None,
    description: Description = None,
    dry_run: DryRun = False,
) -> None:
    """Change a group; its permissions are changed with `gatewayctl permission`."""
    fields = {"name": name, "description": description}
    given = {key: value for key, value in fields.items() if value is not None}
    if not given:
        raise usage("cannot change the group: nothing to change was given")
    request = GroupChange.model_validate(given)
    session.written(
        session.client.call(routes.CHANGE_GROUP, group, body=request, dry_run=dry_run), WRITTEN, "group"
    )


@noun.verb("remove", "gatewayctl group remove api-users --yes")
def remove(session: Session, group: GroupRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a group; its members keep their accounts and lose what it added."""
    confirm(f"Remove the group {group}?", yes=yes or dry_run)
    session.written(session.client.call(routes.REMOVE_GROUP, group, dry_run=dry_run), WRITTEN, "group")


@noun.verb("members", "gatewayctl group members api-users -o name")
def members(session: Session, group: GroupRef) -> None:
    """List the members of a group, each with who put it there.

    The sources are manual, default (DEFAULT_GROUP_ID) and scim. A member with several stays until all of them
    have taken it out.
    """
    session.show_all(session.client.call(routes.LIST_MEMBERS, group).users, MEMBERS)


@noun.verb("add-member", "gatewayctl group add-member api-users ada@example.org")
def add_member(session: Session, group: GroupRef, users: UserRefs, dry_run: DryRun = False) -> None:
    """Add users to a group by hand; a user who is in it already is no error.

    Identity providers neither see nor remove what is added by hand.
    """
    row = session.client.call(routes.ADD_MEMBERS, group, body=GroupMembers(users=users), dry_run=dry_run)
    session.written(row, WRITTEN, f"{row.changed_members} members of group")


@noun.verb(
    "remove-member",
    "gatewayctl group remove-member api-users ada@example.org",
    "gatewayctl group remove-member api-users ada@example.org --source manual",
)
def remove_member(
    session: Session,
    group: GroupRef,
    users: UserRefs,
    source: Annotated[
        SourceName | None,
        typer.Option(
            "--source", help="Remove only memberships from this source; from any source if not given."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Remove users from a group; a user who is not in it is no error.

    Whom an identity provider has put into the group, it may put back.
    """
    request = RemovedMembers(users=users)
    if source is not None:
        request.source = source
    row = session.client.call(routes.REMOVE_MEMBERS, group, body=request, dry_run=dry_run)
    session.written(row, WRITTEN, f"{row.changed_members} members of group")
    if row.provided_members:
        session.note(f"An identity provider had added {row.provided_members} of them and may do so again.")


@noun.verb("link", "gatewayctl group link api-users --external-id 3b1f7a2e")
def link(
    session: Session,
    group: GroupRef,
    external_id: Annotated[
        str, typer.Option("--external-id", metavar="ID", help="External id of the group at the provider.")
    ],
    provider: ProviderName = None,
    dry_run: DryRun = False,
) -> None:
    """Link a group to its id at an identity provider, by which SCIM finds it."""
    request = Link(external_id=external_id, provider=provider)
    session.written(
        session.client.call(routes.LINK_GROUP, group, body=request, dry_run=dry_run), WRITTEN, "group"
    )


@noun.verb("unlink", "gatewayctl group unlink api-users")
def unlink(session: Session, group: GroupRef, provider: ProviderName = None, dry_run: DryRun = False) -> None:
    """Unlink a group from an identity provider."""
    request = Unlink(external_id=True, provider=provider)
    session.written(
        session.client.call(routes.UNLINK_GROUP, group, body=request, dry_run=dry_run), WRITTEN, "group"
    )


def _new_group(name: str, description: str | None, allow: list[str] | None) -> NewGroup:
    fields: dict[str, object] = {"name": name}
    if description is not None:
        fields["description"] = description
    if allow:
        fields["permissions"] = tree_of(parse_flags([f"{leaf}=true" for leaf in allow]))
    return NewGroup.model_validate(fields)
