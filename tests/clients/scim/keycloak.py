"""Keycloak with its SCIM client plug-in: whole resources by PUT, and PATCH when it is told to.

From the source of the plug-in (mitodl/keycloak-scim) and of the library that sends for it. It has a content
type on every request, relative references of members, and e-mail addresses with nothing but a value.
"""

from typing import Any

from tests.clients.scim.story import GROUP, USER, Pages, Step, Story, op, patch, work_email

KIM, KAI = "kim@keycloak.example.org", "kai@keycloak.example.org"


def profile(address: str, given: str, **changed: Any) -> dict[str, Any]:
    """Return the user as the plug-in makes it."""
    return {
        "schemas": [USER],
        "externalId": f"keycloak-id-of-{given.lower()}",
        "userName": address,
        "displayName": f"{given} Cloak",
        "name": {"familyName": "Cloak", "givenName": given},
        "emails": [{"value": address}],
        "active": True,
        **changed,
    }


def group(name: str, *names: str, **changed: Any) -> dict[str, Any]:
    """Return the group as the plug-in makes it."""
    made = {"schemas": [GROUP], "externalId": "keycloak-group", "displayName": name, **changed}
    if names:
        made["members"] = [
            {"value": f"{{{each}}}", "type": "User", "$ref": f"Users/{{{each}}}"} for each in names
        ]
    return made


def group_patch(name: str, *names: str) -> dict[str, Any]:
    """Return the group as the plug-in patches it: all members, then the name and the external id."""
    members = (
        op("replace", "members", value=[{"value": f"{{{each}}}", "type": "User"} for each in names])
        if names
        else op("remove", "members")
    )
    rest = (op("replace", "displayName", value=name), op("replace", "externalId", value="keycloak-group"))
    return patch(members, *rest)


USERS = (
    Pages("import users", "/Users?startIndex={start}"),
    Step("import groups", "GET", "/Groups"),
    Step(
        "create",
        "POST",
        "/Users",
        profile(KIM, "Kim"),
        201,
        shows={"externalId": "keycloak-id-of-kim", "emails": work_email(KIM)},
        keeps={"kim": "id"},
    ),
    Step("create another", "POST", "/Users", profile(KAI, "Kai"), 201, keeps={"kai": "id"}),
    Step(
        "replace",
        "PUT",
        "/Users/{kim}",
        profile(KIM, "Kimberly", id="{kim}", externalId="keycloak-id-of-kim"),
        shows={"displayName": "Kimberly Cloak", "name.givenName": "Kimberly"},
    ),
    Step(
        "patch",
        "PATCH",
        "/Users/{kai}",
        patch(
            op("replace", "active", value="true"),
            op("replace", "userName", value=KAI),
            op("replace", "displayName", value="Kai the Cloak"),
        ),
        shows={"displayName": "Kai the Cloak", "active": True},
    ),
)
GROUPS = (
    Step(
        "create the group",
        "POST",
        "/Groups",
        group("Keycloak Group", "kim"),
        201,
        members=("{kim}",),
        keeps={"group": "id"},
    ),
    Step(
        "replace the group",
        "PUT",
        "/Groups/{group}",
        group("Keycloak Group", "kim", "kai", id="{group}"),
        members=("{kim}", "{kai}"),
    ),
    Step(
        "rename it, with the place of the group among the values",
        "PUT",
        "/Groups/{group}",
        group("Keycloak Guild", "kim", "kai", id="{group}", meta={"location": "Groups/{group}"}),
        shows={"displayName": "Keycloak Guild"},
        members=("{kim}", "{kai}"),
    ),
    Step("patch the group", "PATCH", "/Groups/{group}", group_patch("Keycloak Guild", "kai"), 204),
    Step("one is left", "GET", "/Groups/{group}", members=("{kai}",)),
    Step("patch the last member out", "PATCH", "/Groups/{group}", group_patch("Keycloak Guild"), 204),
    Step("none is left", "GET", "/Groups/{group}", shows={"displayName": "Keycloak Guild"}, members=()),
)
END = (
    Step(
        "disable by the whole",
        "PUT",
        "/Users/{kim}",
        profile(KIM, "Kim", id="{kim}", active=False),
        shows={"active": False},
    ),
    Step(
        "enable by a patch",
        "PATCH",
        "/Users/{kim}",
        patch(op("replace", "active", value="true"), op("replace", "userName", value=KIM)),
        shows={"active": True},
    ),
    Step(
        "disable by a patch",
        "PATCH",
        "/Users/{kim}",
        patch(op("replace", "active", value="false")),
        shows={"active": False},
    ),
    Step("delete the group", "DELETE", "/Groups/{group}", status=204),
    Step("delete the user", "DELETE", "/Users/{kim}", status=204),
    Step("read the user", "GET", "/Users/{kim}", shows={"active": False}),
)

STORY = Story(
    "Keycloak",
    (*USERS, *GROUPS, *END),
    headers={
        "User-Agent": "Apache-HttpClient/4.5.14 (Java/21.0.4)",
        "Content-Type": "application/scim+json; charset=UTF-8",
    },
)
