"""authentik: discovery first, external ids on everything, one operation for each member, adoption after 409.

From the source of its SCIM provider.
"""

from typing import Any

from tests.clients.scim.story import GROUP, USER, Pages, Step, Story, op, patch

ALMA, ABEL = "alma@authentik.example.org", "abel@authentik.example.org"


def profile(address: str, name: str, **changed: Any) -> dict[str, Any]:
    """Return the user that the default mapping makes."""
    given, _, family = name.partition(" ")
    return {
        "schemas": [USER],
        "externalId": f"uid-of-{given.lower()}",
        "userName": address,
        "name": {"formatted": name, "givenName": given, "familyName": family},
        "displayName": name,
        "locale": "en",
        "photos": [{"value": "https://authentik.example.org/avatar.png", "type": "photo"}],
        "active": True,
        "emails": [{"value": address, "type": "other", "primary": True}],
        **changed,
    }


def group(name: str, **changed: Any) -> dict[str, Any]:
    """Return the group that the default mapping makes."""
    return {"schemas": [GROUP], "externalId": "pk-of-the-group", "displayName": name, **changed}


def each(verb: str, *names: str) -> dict[str, Any]:
    """Return a request with one operation for each member."""
    return patch(*(op(verb, "members", value=[{"value": f"{{{name}}}"}]) for name in names))


DISCOVERY = (
    Step(
        "read what is supported",
        "GET",
        "/ServiceProviderConfig",
        shows={
            "patch.supported": True,
            "bulk.supported": False,
            "bulk.maxOperations": 0,
            "filter.supported": True,
            "changePassword.supported": False,
            "sort.supported": True,
            "authenticationSchemes.0.type": "oauthbearertoken",
        },
        filled=("authenticationSchemes.0.name", "authenticationSchemes.0.description"),
    ),
)
USERS = (
    Step(
        "create",
        "POST",
        "/Users",
        profile(ALMA, "Alma Authentic"),
        201,
        shows={
            "externalId": "uid-of-alma",
            "displayName": "Alma Authentic",
            "emails": [{"value": ALMA, "type": "other", "primary": True}],
        },
        lacks=("photos", "locale"),
        keeps={"alma": "id"},
    ),
    Step("create another", "POST", "/Users", profile(ABEL, "Abel Able"), 201, keeps={"abel": "id"}),
    Step("create what is there", "POST", "/Users", profile(ALMA, "Alma Authentic"), 409, "uniqueness"),
    Step(
        "look for it to adopt it",
        "GET",
        "/Users?filter=userName+eq+%22alma%40authentik.example.org%22",
        total=1,
        shows={"Resources.0.id": "{alma}"},
    ),
    Step(
        "update",
        "PUT",
        "/Users/{alma}",
        profile(ALMA, "Alma A.", id="{alma}"),
        shows={"displayName": "Alma A.", "externalId": "uid-of-alma"},
    ),
)
GROUPS = (
    Step(
        "create the group without members",
        "POST",
        "/Groups",
        group("authentik Readers"),
        201,
        shows={"externalId": "pk-of-the-group"},
        members=(),
        keeps={"group": "id"},
    ),
    Step("create it again", "POST", "/Groups", group("authentik Readers"), 409, "uniqueness"),
    Step(
        "look for it to adopt it",
        "GET",
        "/Groups?filter=displayName+eq+%22authentik+Readers%22",
        total=1,
        shows={"Resources.0.id": "{group}"},
    ),
    Step("add members", "PATCH", "/Groups/{group}", each("add", "alma", "abel"), 204),
    Step("compare the members", "GET", "/Groups/{group}", members=("{alma}", "{abel}")),
    Step(
        "rename with the whole group and no path",
        "PATCH",
        "/Groups/{group}",
        patch(op("replace", value=group("authentik Writers", id="{group}"))),
        204,
    ),
    Step(
        "members stay",
        "GET",
        "/Groups/{group}",
        shows={"displayName": "authentik Writers"},
        members=("{alma}", "{abel}"),
    ),
    Pages("discover groups", "/Groups?startIndex={start}", holds=("{group}",)),
    Pages("discover users", "/Users?startIndex={start}", holds=("{alma}", "{abel}")),
)
END = (
    Step(
        "disable",
        "PUT",
        "/Users/{alma}",
        profile(ALMA, "Alma A.", id="{alma}", active=False),
        shows={"active": False},
    ),
    Step(
        "enable",
        "PUT",
        "/Users/{alma}",
        profile(ALMA, "Alma A.", id="{alma}"),
        shows={"active": True},
    ),
    Step("remove a member", "PATCH", "/Groups/{group}", each("remove", "alma"), 204),
    Step("the other one stays", "GET", "/Groups/{group}", members=("{abel}",)),
    Step("delete the group", "DELETE", "/Groups/{group}", status=204),
    Step("a second delete finds nothing", "DELETE", "/Groups/{group}", status=404),
    Step("delete the user", "DELETE", "/Users/{alma}", status=204),
    Step("create the user anew", "POST", "/Users", profile(ALMA, "Alma Again"), 409, "uniqueness"),
    Step(
        "adopt it",
        "GET",
        "/Users?filter=userName+eq+%22alma%40authentik.example.org%22",
        total=1,
        shows={"Resources.0.active": False},
    ),
    Step(
        "which enables it",
        "PUT",
        "/Users/{alma}",
        profile(ALMA, "Alma Again", id="{alma}"),
        shows={"active": True, "displayName": "Alma Again"},
    ),
)

STORY = Story(
    "authentik",
    (*DISCOVERY, *USERS, *GROUPS, *END),
    headers={
        "User-Agent": "authentik@2026.10.0",
        "Accept": "application/scim+json",
        "Content-Type": "application/scim+json",
    },
)
