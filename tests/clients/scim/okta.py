"""Okta with an integration of its network: users by PUT and PATCH, groups pushed by PATCH, import by pages.

From the vendor's protocol reference; the first steps are those of its published test of SCIM servers.
"""

from typing import Any

from tests.clients.scim.story import GROUP, UNKNOWN_ID, USER, Pages, Step, Story, op, patch, work_email

TEST_USER, OTHER = "test.user@okta.local", "other.user@okta.local"


def profile(user_name: str, given: str, external_id: str) -> dict[str, Any]:
    """Return a new user as Okta sends it."""
    return {
        "schemas": [USER],
        "userName": user_name,
        "name": {"givenName": given, "familyName": "User"},
        "emails": [{"primary": True, "value": user_name, "type": "work"}],
        "displayName": f"{given} User",
        "locale": "en-US",
        "externalId": external_id,
        "groups": [],
        "password": "1mz050nq",
        "active": True,
    }


def members(*names: str) -> list[dict[str, str]]:
    """Return members as Okta lists them."""
    return [{"value": f"{{{name}}}", "display": f"{name}@okta.local"} for name in names]


TEST = (
    Step(
        "test the credentials",
        "GET",
        "/Users?startIndex=1&count=2",
        filled=(
            "Resources.0.id",
            "Resources.0.userName",
            "Resources.0.name.givenName",
            "Resources.0.name.familyName",
            "Resources.0.emails.0.value",
        ),
    ),
    Step("test groups", "GET", "/Groups?startIndex=1&count=100"),
    Step("a user that is not there", "GET", f"/Users/{UNKNOWN_ID}", status=404),
    Step(
        "a user name that nobody has",
        "GET",
        "/Users?filter=userName%20eq%20%22test.user%40okta.local%22&startIndex=1&count=100",
        total=0,
        shows={"Resources": [], "itemsPerPage": 0, "startIndex": 1},
    ),
)
USERS = (
    Step(
        "create",
        "POST",
        "/Users",
        profile(TEST_USER, "Test", "00ujl29u0le5T6Aj10h7"),
        201,
        shows={
            "userName": TEST_USER,
            "externalId": "00ujl29u0le5T6Aj10h7",
            "displayName": "Test User",
            "name.givenName": "Test",
            "name.familyName": "User",
            "emails": work_email(TEST_USER),
            "active": True,
        },
        lacks=("password", "locale"),
        keeps={"test": "id"},
    ),
    Step("create twice", "POST", "/Users", profile(TEST_USER, "Test", "00ujother"), 409, "uniqueness"),
    Step(
        "create with a taken external id",
        "POST",
        "/Users",
        profile(OTHER, "Other", "00ujl29u0le5T6Aj10h7"),
        409,
        "uniqueness",
    ),
    Step(
        "find",
        "GET",
        "/Users?filter=userName%20eq%20%22TEST.user%40okta.local%22&startIndex=1&count=100",
        total=1,
        shows={"Resources.0.id": "{test}"},
    ),
    Step(
        "create another",
        "POST",
        "/Users",
        profile(OTHER, "Other", "00uother"),
        201,
        keeps={"other": "id"},
    ),
    Step("read before the update", "GET", "/Users/{test}", shows={"userName": TEST_USER}),
    Step(
        "update by the whole user",
        "PUT",
        "/Users/{test}",
        {
            "schemas": [USER],
            "id": "{test}",
            "userName": TEST_USER,
            "name": {"givenName": "Another", "middleName": "Excited", "familyName": "User"},
            "emails": [{"primary": True, "value": TEST_USER, "type": "work", "display": TEST_USER}],
            "active": True,
            "groups": [],
            "meta": {"resourceType": "User"},
        },
        shows={
            "id": "{test}",
            "name.givenName": "Another",
            "displayName": "Another User",
            "externalId": "00ujl29u0le5T6Aj10h7",
            "emails": work_email(TEST_USER),
        },
        lacks=("name.middleName",),
    ),
    Step(
        "deactivate",
        "PATCH",
        "/Users/{test}",
        patch(op("replace", value={"active": False})),
        shows={"active": False, "displayName": "Another User"},
    ),
    Step(
        "a deactivated user is found",
        "GET",
        "/Users?filter=userName%20eq%20%22test.user%40okta.local%22&startIndex=1&count=100",
        total=1,
        shows={"Resources.0.active": False},
    ),
    Step(
        "activate by the whole user",
        "PUT",
        "/Users/{test}",
        {**profile(TEST_USER, "Test", "00ujl29u0le5T6Aj10h7"), "id": "{test}"},
        shows={"active": True, "displayName": "Test User"},
    ),
)
GROUPS = (
    Step(
        "look for the group",
        "GET",
        "/Groups?filter=displayName%20eq%20%22Test%20SCIMv2%22&startIndex=1&count=100",
        total=0,
    ),
    Step(
        "push the group",
        "POST",
        "/Groups",
        {"schemas": [GROUP], "displayName": "Test SCIMv2", "members": []},
        201,
        shows={"displayName": "Test SCIMv2"},
        members=(),
        lacks=("externalId",),
        keeps={"group": "id"},
    ),
    Step("read the group", "GET", "/Groups/{group}", members=()),
    Step(
        "rename, with the id among the values",
        "PATCH",
        "/Groups/{group}",
        patch(op("replace", value={"id": "{group}", "displayName": "Test SCIMv20"})),
        204,
    ),
    Step(
        "add members",
        "PATCH",
        "/Groups/{group}",
        patch(op("add", "members", value=members("test"))),
        204,
    ),
    Step(
        "remove one and add one in one request",
        "PATCH",
        "/Groups/{group}",
        patch(
            op("remove", 'members[value eq "{test}"]'),
            op("add", "members", value=members("other")),
        ),
        204,
    ),
    Step(
        "one is in",
        "GET",
        "/Groups/{group}",
        shows={"displayName": "Test SCIMv20", "members.0.type": "User"},
        members=("{other}",),
    ),
    Step(
        "push all members",
        "PATCH",
        "/Groups/{group}",
        patch(op("replace", "members", value=members("test", "other"))),
        204,
    ),
    Step("all are in", "GET", "/Groups/{group}", members=("{test}", "{other}")),
    Step(
        "an update of the user says nothing of groups that it may not write",
        "PUT",
        "/Users/{test}",
        {**profile(TEST_USER, "Test", "00ujl29u0le5T6Aj10h7"), "id": "{test}"},
        shows={"groups.0.value": "{group}"},
    ),
    Step(
        "push no members",
        "PATCH",
        "/Groups/{group}",
        patch(op("replace", "members", value=[])),
        204,
    ),
    Step("none are in", "GET", "/Groups/{group}", members=()),
)
END = (
    Pages("import users", "/Users?startIndex={start}&count=2", holds=("{test}", "{other}")),
    Pages("import groups", "/Groups?startIndex={start}&count=100", holds=("{group}",)),
    Step("unlink the group and delete it", "DELETE", "/Groups/{group}", status=204),
    Step("the group is gone", "GET", "/Groups/{group}", status=404),
    Step(
        "deactivate at last; users are never deleted",
        "PATCH",
        "/Users/{test}",
        patch(op("replace", value={"active": False})),
        shows={"active": False},
    ),
)

STORY = Story(
    "Okta",
    (*TEST, *USERS, *GROUPS, *END),
    content_type="application/scim+json; charset=utf-8",
    headers={"User-Agent": "Okta SCIM Client 1.0.0", "Accept": "application/scim+json"},
)
