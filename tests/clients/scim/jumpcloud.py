"""JumpCloud: a test user and a test group when the integration is switched on, then users by PUT.

From the vendor's guide to custom SCIM integrations, which tells of the test user and test group, and of what
receivers note about its groups: members are removed by a list of values.
"""

from typing import Any

from tests.clients.scim.story import GROUP, USER, Step, Story, op, patch, work_email

TESTER, JADE = "scim-test@jumpcloud.example.org", "jade@jumpcloud.example.org"


def profile(address: str, given: str, **changed: Any) -> dict[str, Any]:
    """Return the user as it is sent each time."""
    return {
        "schemas": [USER],
        "userName": address,
        "name": {"givenName": given, "familyName": "Cloud"},
        "displayName": "",
        "emails": [{"value": address, "type": "work", "primary": True}],
        "active": True,
        "externalId": f"jc-{given.lower()}",
        **changed,
    }


ACTIVATION = (
    Step("look for the test user", "GET", f"/Users?filter=userName%20eq%20%22{TESTER}%22", total=0),
    Step(
        "create the test user",
        "POST",
        "/Users",
        profile(TESTER, "Test"),
        201,
        shows={"userName": TESTER, "displayName": "Test Cloud"},
        keeps={"tester": "id"},
    ),
    Step(
        "update the test user",
        "PUT",
        "/Users/{tester}",
        profile(TESTER, "Test", name={"givenName": "Tested", "familyName": "Cloud"}),
        shows={"name.givenName": "Tested"},
    ),
    Step(
        "create the test group",
        "POST",
        "/Groups",
        {"schemas": [GROUP], "displayName": "JumpCloud test group", "members": [{"value": "{tester}"}]},
        201,
        members=("{tester}",),
        keeps={"group": "id"},
    ),
    Step("delete the test group", "DELETE", "/Groups/{group}", status=204),
    Step("delete the test user", "DELETE", "/Users/{tester}", status=204),
    Step(
        "switched on again, the test user is found",
        "GET",
        f"/Users?filter=userName%20eq%20%22{TESTER}%22",
        total=1,
        shows={"Resources.0.id": "{tester}", "Resources.0.active": False},
    ),
)
LIFE = (
    Step("look for a user", "GET", f"/Users?filter=userName%20eq%20%22{JADE}%22", total=0),
    Step(
        "create",
        "POST",
        "/Users",
        profile(JADE, "Jade"),
        201,
        shows={"emails": work_email(JADE), "externalId": "jc-jade"},
        keeps={"jade": "id"},
    ),
    Step(
        "look for the group",
        "GET",
        "/Groups?filter=displayName%20eq%20%22JumpCloud%20Pilots%22",
        total=0,
    ),
    Step(
        "create the group",
        "POST",
        "/Groups",
        {"schemas": [GROUP], "displayName": "JumpCloud Pilots", "externalId": "jc-pilots"},
        201,
        members=(),
        keeps={"group": "id"},
    ),
    Step(
        "the members of the group by the whole",
        "PUT",
        "/Groups/{group}",
        {"schemas": [GROUP], "displayName": "JumpCloud Pilots", "members": [{"value": "{jade}"}]},
        shows={"externalId": "jc-pilots"},
        members=("{jade}",),
    ),
    Step(
        "rename the group, without its members",
        "PUT",
        "/Groups/{group}",
        {"schemas": [GROUP], "displayName": "JumpCloud Crew"},
        shows={"displayName": "JumpCloud Crew"},
        members=("{jade}",),
    ),
    Step(
        "suspend",
        "PUT",
        "/Users/{jade}",
        profile(JADE, "Jade", active=False),
        shows={"active": False},
    ),
    Step(
        "unsuspend",
        "PUT",
        "/Users/{jade}",
        profile(JADE, "Jade"),
        shows={"active": True},
    ),
    Step(
        "take the member out by a list of values",
        "PATCH",
        "/Groups/{group}",
        patch(op("remove", "members", value=[{"value": "{jade}"}])),
        204,
    ),
    Step("no member is left", "GET", "/Groups/{group}", members=()),
    Step(
        "put the member in by a patch",
        "PATCH",
        "/Groups/{group}",
        patch(op("add", "members", value=[{"value": "{jade}"}])),
        204,
    ),
    Step(
        "no members by the whole",
        "PUT",
        "/Groups/{group}",
        {"schemas": [GROUP], "displayName": "JumpCloud Crew", "members": []},
        members=(),
    ),
    Step("delete the group", "DELETE", "/Groups/{group}", status=204),
    Step("delete the user", "DELETE", "/Users/{jade}", status=204),
    Step("read the user", "GET", "/Users/{jade}", shows={"active": False}),
)

STORY = Story("JumpCloud", (*ACTIVATION, *LIFE))
