"""OneLogin with its SCIM v2 application: the schemas of drafts, empty ends of queries, nulls for the unset.

The spelling of schemas and addresses is that of requests recorded by receivers (a log in issue 11249 of
goauthentik/authentik); the rest follows the vendor's template and its guide.
"""

from typing import Any

from tests.clients.scim.story import GROUP, USER, Pages, Step, Story, op, patch, work_email

OLIVE = "olive@onelogin.example.org"
DRAFT_ENTERPRISE = "urn:scim:schemas:extension:enterprise:2.0"
DRAFT_SCHEMAS = ["urn:scim:schemas:core:2.0", DRAFT_ENTERPRISE]


def profile(schemas: list[str], **changed: Any) -> dict[str, Any]:
    """Return the user as the template fills it in."""
    return {
        "schemas": schemas,
        "userName": OLIVE,
        "displayName": "Olive Oil",
        "externalId": "onelogin-4711",
        "name": {"familyName": "Oil", "givenName": "Olive", "formatted": "Olive Oil"},
        "emails": [{"value": OLIVE, "type": "work", "primary": True}],
        "title": None,
        "phoneNumbers": [{"value": None, "type": "work"}],
        DRAFT_ENTERPRISE: {"department": None, "manager": {"managerId": None}},
        **changed,
    }


STORY = Story(
    "OneLogin",
    (
        Step("the API status is switched on", "GET", "/Users?", filled=("Resources.0.id",)),
        Pages("groups become entitlements", "/Groups?startIndex={start}&count=100", holds=()),
        Step(
            "look for the user",
            "GET",
            f"/Users?filter=userName+eq+%22{OLIVE}%22&",
            total=0,
        ),
        Step(
            "create",
            "POST",
            "/Users?",
            profile(DRAFT_SCHEMAS, active=True),
            201,
            shows={
                "userName": OLIVE,
                "externalId": "onelogin-4711",
                "displayName": "Olive Oil",
                "active": True,
                "emails": work_email(OLIVE),
            },
            lacks=(DRAFT_ENTERPRISE, "title", "phoneNumbers"),
            keeps={"olive": "id"},
        ),
        Step(
            "find the user",
            "GET",
            f"/Users?filter=userName+eq+%22{OLIVE}%22&",
            total=1,
            shows={"Resources.0.id": "{olive}"},
        ),
        Step(
            "update",
            "PUT",
            "/Users/{olive}?",
            profile(DRAFT_SCHEMAS, displayName="Olive O."),
            shows={"displayName": "Olive O.", "active": True},
        ),
        Step(
            "update with the schemas of the standard",
            "PUT",
            "/Users/{olive}",
            profile([USER], displayName="Olive Oyl"),
            shows={"displayName": "Olive Oyl"},
        ),
        Step(
            "a rule makes a group",
            "POST",
            "/Groups",
            {"schemas": [GROUP], "displayName": "OneLogin Sailors"},
            201,
            members=(),
            keeps={"group": "id"},
        ),
        Step(
            "find the group",
            "GET",
            "/Groups?filter=displayName+eq+%22OneLogin+Sailors%22&",
            total=1,
            shows={"Resources.0.id": "{group}"},
        ),
        Step(
            "a role adds the member",
            "PATCH",
            "/Groups/{group}",
            patch(op("add", "members", value=[{"value": "{olive}"}])),
            204,
        ),
        Step("the member is in", "GET", "/Groups/{group}", members=("{olive}",)),
        Step(
            "rename the group",
            "PATCH",
            "/Groups/{group}",
            patch(op("replace", "displayName", value="OneLogin Captains")),
            204,
        ),
        Step(
            "suspend",
            "PUT",
            "/Users/{olive}?",
            profile(DRAFT_SCHEMAS, active=False),
            shows={"active": False},
        ),
        Step("read", "GET", "/Users/{olive}?", shows={"active": False}),
        Step(
            "reactivate",
            "PATCH",
            "/Users/{olive}",
            patch(op("replace", "active", value=True)),
            shows={"active": True},
        ),
        Step(
            "the role is taken away",
            "PATCH",
            "/Groups/{group}",
            patch(op("remove", 'members[value eq "{olive}"]')),
            204,
        ),
        Step("the member is out", "GET", "/Groups/{group}", members=()),
        Step("delete the group", "DELETE", "/Groups/{group}", status=204),
        Step("delete the user", "DELETE", "/Users/{olive}?", status=204),
        Step("the user stays, not active", "GET", "/Users/{olive}", shows={"active": False}),
    ),
    content_type="application/json",
    headers={"User-Agent": "application/json"},
)
