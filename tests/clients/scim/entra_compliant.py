"""Entra ID with the flag aadOptscim062020: operations of the standard, several attributes without a path.

From the vendor's page of compliance issues.
"""

from tests.clients.scim.story import ENTERPRISE, GROUP, UNKNOWN_ID, USER, Step, Story, op, patch, work_email

EVE = "eve@compliant.example.org"
EXTERNAL_ID = "6c75de36-30fa-4d2d-a196-6bdcdb6b6539"

CREATE = (
    Step(
        "the test of the connection",
        "GET",
        f"/Users?filter=externalId+eq+%22{UNKNOWN_ID}%22",
        total=0,
    ),
    Step(
        "create",
        "POST",
        "/Users",
        {
            "schemas": [USER, ENTERPRISE],
            "externalId": EXTERNAL_ID,
            "userName": EVE,
            "active": True,
            "emails": [{"primary": True, "type": "work", "value": EVE}],
            "meta": {"resourceType": "User"},
            "name": {"familyName": "Moneypenny", "givenName": "Eve"},
            f"{ENTERPRISE}": {"manager": {"value": UNKNOWN_ID}},
        },
        201,
        shows={"displayName": "Eve Moneypenny", "active": True},
        keeps={"eve": "id"},
    ),
    Step(
        "create another",
        "POST",
        "/Users",
        {"schemas": [USER], "userName": "jim@compliant.example.org", "active": True},
        201,
        shows={"displayName": "jim@compliant.example.org"},
        lacks=("externalId",),
        keeps={"jim": "id"},
    ),
)
CHANGES = (
    Step(
        "replace several attributes without a path, with dotted names and the extension",
        "PATCH",
        "/Users/{eve}",
        patch(
            op("replace", 'emails[type eq "work"].value', value="agent@compliant.example.org"),
            op(
                "replace",
                value={
                    "displayName": "Eve M.",
                    "name.givenName": "Evelyn",
                    "name.familyName": "Penny",
                    f"{ENTERPRISE}:employeeNumber": "700",
                },
            ),
        ),
        shows={
            "displayName": "Eve M.",
            "name.givenName": "Evelyn",
            "name.familyName": "Penny",
            "emails": work_email("agent@compliant.example.org"),
            "userName": EVE,
        },
        lacks=(ENTERPRISE,),
    ),
    Step(
        "add several attributes without a path",
        "PATCH",
        "/Users/{jim}",
        patch(
            op(
                "add",
                value={
                    "externalId": "aa1eca08-7179-4eeb-a0be-a519f7e5cd1a",
                    "nickName": "Jimmy",
                    "name": {"givenName": "Jim"},
                },
            )
        ),
        shows={"externalId": "aa1eca08-7179-4eeb-a0be-a519f7e5cd1a", "name.givenName": "Jim"},
        lacks=("nickName",),
    ),
    Step(
        "an external id of another user",
        "PATCH",
        "/Users/{jim}",
        patch(op("replace", "externalId", value=EXTERNAL_ID)),
        409,
        "uniqueness",
    ),
    Step(
        "nothing of it was kept",
        "GET",
        "/Users/{jim}",
        shows={"externalId": "aa1eca08-7179-4eeb-a0be-a519f7e5cd1a"},
    ),
)
GROUPS = (
    Step(
        "create the group",
        "POST",
        "/Groups",
        {
            "schemas": [GROUP],
            "externalId": "60f1bb27-2e1e-402d-bcc4-ec999564a194",
            "displayName": "Compliant",
        },
        201,
        members=(),
        keeps={"group": "id"},
    ),
    Step(
        "add members",
        "PATCH",
        "/Groups/{group}",
        patch(op("add", "members", value=[{"value": "{eve}"}, {"value": "{jim}"}])),
        204,
    ),
    Step(
        "rename without a path",
        "PATCH",
        "/Groups/{group}",
        patch(op("replace", value={"displayName": "Very compliant"})),
        204,
    ),
    Step(
        "members stay when the name changes",
        "GET",
        "/Groups/{group}",
        shows={"displayName": "Very compliant"},
        members=("{eve}", "{jim}"),
    ),
)
END = (
    Step(
        "disable",
        "PATCH",
        "/Users/{eve}",
        patch(op("replace", "active", value=False)),
        shows={"active": False},
    ),
    Step(
        "enable without a path",
        "PATCH",
        "/Users/{eve}",
        patch(op("replace", value={"active": True})),
        shows={"active": True, "displayName": "Eve M."},
    ),
    Step(
        "remove a member by a filter",
        "PATCH",
        "/Groups/{group}",
        patch(op("remove", 'members[value eq "{eve}"]')),
        204,
    ),
    Step("only that one is out", "GET", "/Groups/{group}", members=("{jim}",)),
    Step("delete the group", "DELETE", "/Groups/{group}", status=204),
    Step("delete the user", "DELETE", "/Users/{eve}", status=204),
    Step("the user is not active", "GET", "/Users/{eve}", shows={"active": False}),
)

STORY = Story(
    "Entra ID with aadOptscim062020",
    (*CREATE, *CHANGES, *GROUPS, *END),
    content_type="application/scim+json; charset=utf-8",
    headers={"Accept": "application/scim+json"},
)
