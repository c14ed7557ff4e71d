"""Entra ID as it speaks by default: capitalised operations, booleans as text, members removed by value lists.

From the vendor's tutorial on SCIM endpoints and its page of compliance issues.
"""

from tests.clients.scim.story import ENTERPRISE, GROUP, UNKNOWN_ID, USER, Pages, Step, Story, op, patch

ADA, BOB = "Ada.Lovelace@Entra.example.org", "bob@entra.example.org"
RESOURCE_MANAGEMENT = "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"

CREATE_ADA = {
    "schemas": [USER, ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": ADA,
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "ada@mail.entra.example.org"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Ada Lovelace", "familyName": "Lovelace", "givenName": "Ada"},
    "roles": [],
    ENTERPRISE: {"employeeNumber": "701984", "department": "Engines"},
}
CREATE_BOB = {
    "schemas": [USER, ENTERPRISE],
    "externalId": "58342554-38d6-4ec8-948c-50044d0a33fd",
    "userName": BOB,
    "active": True,
    "emails": [{"type": "work", "value": BOB}],
    "meta": {"resourceType": "User"},
    "name": {"familyName": "Builder", "givenName": "Bob"},
}
CREATE_GROUP = {
    "schemas": [GROUP, RESOURCE_MANAGEMENT],
    "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
    "displayName": "Entra Engineers",
    "meta": {"resourceType": "Group"},
}


def member(name: str) -> list[dict[str, str | None]]:
    """Return a list of one member as Entra sends it."""
    return [{"$ref": None, "value": f"{{{name}}}"}]


CONNECT = (
    Step(
        "the test of the connection looks for a user that nobody is",
        "GET",
        f"/Users?filter=userName+eq+%22{UNKNOWN_ID}%22",
        total=0,
        shows={"Resources": [], "startIndex": 1, "itemsPerPage": 0},
    ),
    Step(
        "the test of the connection looks for a group that is not",
        "GET",
        f"/Groups?excludedAttributes=members&filter=displayName+eq+%22{UNKNOWN_ID}%22",
        total=0,
    ),
    Step(
        "opening the attribute mapping discovers the schemas",
        "GET",
        "/Schemas",
        shows={"Resources.0.id": USER, "Resources.1.id": GROUP},
    ),
)
USERS = (
    Step(
        "match by external id",
        "GET",
        "/Users?filter=externalId+eq+%220a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef%22",
        total=0,
    ),
    Step("match by user name", "GET", f"/Users?filter=userName+eq+%22{ADA}%22", total=0),
    Step(
        "create without a display name, with the enterprise extension",
        "POST",
        "/Users",
        CREATE_ADA,
        201,
        shows={
            "userName": ADA,
            "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
            "active": True,
            "displayName": "Ada Lovelace",
            "name": {"formatted": "Ada Lovelace", "familyName": "Lovelace", "givenName": "Ada"},
            "emails": [{"value": "ada@mail.entra.example.org", "type": "work", "primary": True}],
        },
        lacks=(ENTERPRISE, "roles"),
        keeps={"ada": "id"},
    ),
    Step(
        "create with an address that is not marked primary",
        "POST",
        "/Users",
        CREATE_BOB,
        201,
        shows={
            "displayName": "Bob Builder",
            "emails": [{"value": BOB, "type": "work", "primary": True}],
        },
        keeps={"bob": "id"},
    ),
    Step("create again", "POST", "/Users", CREATE_ADA, 409, "uniqueness"),
    Step(
        "find by user name in another case",
        "GET",
        f"/Users?filter=userName+eq+%22{ADA.upper()}%22",
        total=1,
        shows={"Resources.0.id": "{ada}", "Resources.0.userName": ADA},
    ),
    Step(
        "find by external id",
        "GET",
        "/Users?filter=externalId+eq+%220a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef%22",
        total=1,
        shows={"Resources.0.id": "{ada}"},
    ),
    Step(
        "find by work address",
        "GET",
        "/Users?filter=emails%5Btype+eq+%22work%22%5D.value+eq+%22ada%40mail.entra.example.org%22",
        total=1,
        shows={"Resources.0.id": "{ada}"},
    ),
    Step("read", "GET", "/Users/{ada}", shows={"id": "{ada}"}),
    Step("read what is not there", "GET", f"/Users/{UNKNOWN_ID}", status=404),
)
CHANGES = (
    Step(
        "change several attributes, one operation each",
        "PATCH",
        "/Users/{ada}",
        patch(
            op("Add", "displayName", value="Ada King"),
            op("Replace", 'emails[type eq "work"].value', value="countess@entra.example.org"),
            op("Replace", "name.familyName", value="King"),
            op("Add", "title", value="Countess"),
            op("Replace", f"{ENTERPRISE}:department", value="Analysis"),
        ),
        shows={
            "displayName": "Ada King",
            "name.familyName": "King",
            "name.givenName": "Ada",
            "emails": [{"value": "countess@entra.example.org", "type": "work", "primary": True}],
        },
        lacks=("title", ENTERPRISE),
    ),
    Step(
        "set the manager",
        "PATCH",
        "/Users/{bob}",
        patch(op("Add", f"{ENTERPRISE}:manager", value="{ada}")),
        shows={"id": "{bob}", "displayName": "Bob Builder"},
        lacks=(ENTERPRISE,),
    ),
    Step(
        "change the user name",
        "PATCH",
        "/Users/{bob}",
        patch(op("Replace", "userName", value="robert@entra.example.org")),
        shows={"userName": "robert@entra.example.org", "emails.0.value": BOB},
    ),
    Step(
        "add an address of another type by a filter that nothing fits",
        "PATCH",
        "/Users/{bob}",
        patch(op("Add", 'emails[type eq "other"].value', value="other@entra.example.org")),
        shows={
            "emails": [
                {"value": BOB, "type": "work", "primary": True},
                {"value": "other@entra.example.org", "type": "other", "primary": False},
            ]
        },
    ),
)
GROUPS = (
    Step(
        "match the group by display name",
        "GET",
        "/Groups?excludedAttributes=members&filter=displayName+eq+%22Entra+Engineers%22",
        total=0,
    ),
    Step(
        "create the group without members",
        "POST",
        "/Groups",
        CREATE_GROUP,
        201,
        shows={"displayName": "Entra Engineers", "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159"},
        members=(),
        keeps={"group": "id"},
    ),
    Step("create the group again", "POST", "/Groups", CREATE_GROUP, 409, "uniqueness"),
    Step(
        "read the group without its members",
        "GET",
        "/Groups/{group}?excludedAttributes=members",
        shows={"displayName": "Entra Engineers"},
        lacks=("members",),
    ),
    Step(
        "add a member",
        "PATCH",
        "/Groups/{group}",
        patch(op("Add", "members", value=member("ada"))),
        204,
    ),
    Step(
        "add another member",
        "PATCH",
        "/Groups/{group}",
        patch(op("Add", "members", value=member("bob"))),
        204,
    ),
    Step(
        "add a member again",
        "PATCH",
        "/Groups/{group}",
        patch(op("Add", "members", value=member("bob"))),
        204,
    ),
    Step("both are in", "GET", "/Groups/{group}", members=("{ada}", "{bob}")),
    Step(
        "ask whether a user is a member",
        "GET",
        "/Groups?excludedAttributes=members&filter=id+eq+%22{group}%22+and+members+eq+%22{ada}%22",
        total=1,
        shows={"Resources.0.id": "{group}"},
        lacks=("Resources.0.members",),
    ),
    Step(
        "the user shows the group",
        "GET",
        "/Users/{ada}",
        shows={"groups.0.value": "{group}", "groups.0.display": "Entra Engineers"},
    ),
    Step(
        "rename the group",
        "PATCH",
        "/Groups/{group}",
        patch(op("Replace", "displayName", value="Entra Analysts")),
        204,
    ),
    Step(
        "find the group by its new name",
        "GET",
        "/Groups?excludedAttributes=members&filter=displayName+eq+%22entra+analysts%22",
        total=1,
        shows={"Resources.0.id": "{group}", "Resources.0.displayName": "Entra Analysts"},
    ),
    Step(
        "the old name is free",
        "GET",
        "/Groups?excludedAttributes=members&filter=displayName+eq+%22Entra+Engineers%22",
        total=0,
    ),
    Step(
        "find the group by external id",
        "GET",
        "/Groups?filter=externalId+eq+%228aa1a0c0-c4c3-4bc0-b4a5-2ef676900159%22",
        total=1,
        shows={"Resources.0.id": "{group}"},
    ),
)
SOFT_DELETE = (
    Step(
        "disable",
        "PATCH",
        "/Users/{ada}",
        patch(op("Replace", "active", value="False")),
        shows={"active": False, "userName": ADA},
    ),
    Step("a disabled user is read", "GET", "/Users/{ada}", shows={"active": False}),
    Step(
        "a disabled user is found",
        "GET",
        f"/Users?filter=userName+eq+%22{ADA}%22",
        total=1,
        shows={"Resources.0.active": False},
    ),
    Step(
        "enable",
        "PATCH",
        "/Users/{ada}",
        patch(op("Replace", "active", value="True")),
        shows={"active": True},
    ),
    Step(
        "remove a member",
        "PATCH",
        "/Groups/{group}",
        patch(op("Remove", "members", value=member("ada"))),
        204,
    ),
    Step("only that one is out", "GET", "/Groups/{group}", members=("{bob}",)),
    Step(
        "ask whether a user is still a member",
        "GET",
        "/Groups?excludedAttributes=members&filter=id+eq+%22{group}%22+and+members+eq+%22{ada}%22",
        total=0,
    ),
)
HARD_DELETE = (
    Step("delete the group", "DELETE", "/Groups/{group}", status=204),
    Step("the group is gone", "GET", "/Groups/{group}", status=404),
    Step("the member has no group any more", "GET", "/Users/{bob}", lacks=("groups.0",)),
    Step("delete the user", "DELETE", "/Users/{ada}", status=204),
    Step("delete the user again", "DELETE", "/Users/{ada}", status=204),
    Step(
        "the user is found and not active",
        "GET",
        f"/Users?filter=userName+eq+%22{ADA}%22",
        total=1,
        shows={"Resources.0.id": "{ada}", "Resources.0.active": False},
    ),
    Step("the user cannot be made anew", "POST", "/Users", CREATE_ADA, 409, "uniqueness"),
    Step(
        "but comes back",
        "PATCH",
        "/Users/{ada}",
        patch(op("Replace", "active", value="True")),
        shows={"active": True, "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef"},
    ),
    Step("the other user is deleted", "DELETE", "/Users/{bob}", status=204),
    Pages("both are still listed", "/Users?startIndex={start}&count=100", holds=("{ada}", "{bob}")),
)

STORY = Story(
    "Entra ID",
    (*CONNECT, *USERS, *CHANGES, *GROUPS, *SOFT_DELETE, *HARD_DELETE),
    content_type="application/scim+json; charset=utf-8",
    headers={"Accept": "application/scim+json", "adscimversion": "6.0"},
)
