"""SailPoint: discovery, aggregation of users and groups by pages, deltas by time, changes by PATCH."""

from tests.clients.scim.story import GROUP, USER, Pages, Step, Story, op, patch, work_email

SAM, SUE = "sam@sailpoint.example.org", "sue@sailpoint.example.org"

DISCOVERY = (
    Step("test the connection", "GET", "/ServiceProviderConfig", shows={"filter.maxResults": 200}),
    Step(
        "discover the resource types",
        "GET",
        "/ResourceTypes",
        total=2,
        shows={"Resources.0.endpoint": "/Users", "Resources.1.endpoint": "/Groups"},
    ),
    Step("discover one", "GET", "/ResourceTypes/User", shows={"schema": USER}),
    Step("discover the schemas", "GET", "/Schemas", total=2),
    Step("discover one schema", "GET", f"/Schemas/{GROUP}", shows={"id": GROUP, "name": "Group"}),
)
CREATE = (
    Step(
        "create an account",
        "POST",
        "/Users",
        {
            "schemas": [USER],
            "userName": SAM,
            "name": {"givenName": "Sam", "familyName": "Sail"},
            "emails": [{"value": SAM, "type": "work", "primary": True}],
            "active": True,
        },
        201,
        shows={"displayName": "Sam Sail", "emails": work_email(SAM)},
        keeps={"sam": "id", "before": "meta.lastModified"},
    ),
    Step(
        "create another account",
        "POST",
        "/Users",
        {"schemas": [USER], "userName": SUE, "displayName": "Sue Point", "active": True},
        201,
        keeps={"sue": "id", "created": "meta.lastModified"},
    ),
    Step(
        "create a group",
        "POST",
        "/Groups",
        {"schemas": [GROUP], "displayName": "SailPoint Crew", "members": [{"value": "{sam}"}]},
        201,
        members=("{sam}",),
        keeps={"group": "id"},
    ),
)
AGGREGATION = (
    Pages("aggregate accounts", "/Users?startIndex={start}&count=3", holds=("{sam}", "{sue}")),
    Pages(
        "aggregate some attributes of accounts",
        "/Users?startIndex={start}&count=3&attributes=userName,emails,active,groups",
        holds=("{sam}", "{sue}"),
    ),
    Pages("aggregate groups", "/Groups?startIndex={start}&count=1", holds=("{group}",)),
    Step(
        "one account with some attributes",
        "GET",
        "/Users/{sam}?attributes=userName,groups.value",
        shows={"userName": SAM, "groups": [{"value": "{group}"}]},
        lacks=("emails", "displayName", "meta", "active"),
    ),
    Step(
        "what changed since",
        "GET",
        "/Users?filter=meta.lastModified%20gt%20%22{before}%22%20and%20userName%20ew%20%22sailpoint.example.org%22",
        total=1,
        shows={"Resources.0.id": "{sue}"},
    ),
    Step(
        "sorted",
        "GET",
        "/Users?filter=userName%20ew%20%22%40sailpoint.example.org%22&sortBy=userName&sortOrder=descending",
        total=2,
        shows={"Resources.0.id": "{sue}", "Resources.1.id": "{sam}"},
    ),
)
CHANGES = (
    Step(
        "change attributes",
        "PATCH",
        "/Users/{sam}",
        patch(op("replace", "name.familyName", value="Ship"), op("replace", "displayName", value="Sam Ship")),
        shows={"displayName": "Sam Ship", "name.familyName": "Ship"},
    ),
    Step(
        "the change is in the delta",
        "GET",
        "/Users?filter=meta.lastModified%20gt%20%22{created}%22%20and%20userName%20eq%20%22"
        "sam%40sailpoint.example.org%22",
        total=1,
        shows={"Resources.0.displayName": "Sam Ship"},
    ),
    Step(
        "groups are not written on the account",
        "PATCH",
        "/Users/{sue}",
        patch(op("add", "groups", value=[{"value": "{group}"}])),
        400,
        "mutability",
    ),
    Step(
        "add an entitlement",
        "PATCH",
        "/Groups/{group}?attributes=displayName,members",
        patch(op("add", "members", value=[{"value": "{sue}"}])),
        shows={"displayName": "SailPoint Crew"},
        members=("{sam}", "{sue}"),
    ),
    Step(
        "rename the group",
        "PATCH",
        "/Groups/{group}",
        patch(op("replace", "displayName", value="SailPoint Mates")),
        204,
    ),
    Step(
        "remove an entitlement",
        "PATCH",
        "/Groups/{group}",
        patch(op("remove", 'members[value eq "{sue}"]')),
        204,
    ),
    Step("one member is left", "GET", "/Groups/{group}", members=("{sam}",)),
)
END = (
    Step(
        "disable",
        "PATCH",
        "/Users/{sam}",
        patch(op("replace", "active", value=False)),
        shows={"active": False},
    ),
    Step(
        "who is disabled",
        "GET",
        "/Users?filter=active%20eq%20false%20and%20userName%20ew%20%22sailpoint.example.org%22",
        total=1,
        shows={"Resources.0.id": "{sam}"},
    ),
    Step(
        "enable",
        "PATCH",
        "/Users/{sam}",
        patch(op("replace", "active", value=True)),
        shows={"active": True},
    ),
    Step("delete the group", "DELETE", "/Groups/{group}", status=204),
    Step("delete the account", "DELETE", "/Users/{sam}", status=204),
    Step("the account is disabled", "GET", "/Users/{sam}", shows={"active": False}),
)

STORY = Story(
    "SailPoint",
    (*DISCOVERY, *CREATE, *AGGREGATION, *CHANGES, *END),
    content_type="application/scim+json",
    headers={"Accept": "application/scim+json"},
)
