"""Okta with an application of its wizard: every update, of users and of groups, is a PUT of the whole.

From the vendor's protocol reference.
"""

from typing import Any

from tests.clients.scim.story import GROUP, USER, Step, Story, work_email

WANDA = "wanda@wizard.example.org"


def profile(**changed: Any) -> dict[str, Any]:
    """Return the user as it is sent each time."""
    return {
        "schemas": [USER],
        "userName": WANDA,
        "name": {"givenName": "Wanda", "familyName": "Wizard"},
        "emails": [{"primary": True, "value": WANDA, "type": "work"}],
        "displayName": "Wanda Wizard",
        "locale": "en-US",
        "externalId": "00uwanda",
        "groups": [],
        "active": True,
        **changed,
    }


def group(name: str, *members: str) -> dict[str, Any]:
    """Return the group as it is sent each time."""
    listed = [{"value": f"{{{member}}}", "display": WANDA} for member in members]
    return {"schemas": [GROUP], "id": "{group}", "displayName": name, "members": listed}


STORY = Story(
    "Okta, application of the wizard",
    (
        Step("test", "GET", "/Users?startIndex=1&count=2"),
        Step(
            "look for the user",
            "GET",
            "/Users?filter=userName%20eq%20%22wanda%40wizard.example.org%22&startIndex=1&count=100",
            total=0,
        ),
        Step("create", "POST", "/Users", profile(password="S3cret!"), 201, keeps={"wanda": "id"}),
        Step(
            "update",
            "PUT",
            "/Users/{wanda}",
            profile(id="{wanda}", displayName="Wanda W.", title="Witch"),
            shows={"displayName": "Wanda W.", "emails": work_email(WANDA), "externalId": "00uwanda"},
            lacks=("title",),
        ),
        Step(
            "push a group with its members",
            "POST",
            "/Groups",
            {
                "schemas": [GROUP],
                "displayName": "Wizards",
                "members": [{"value": "{wanda}", "display": WANDA}],
            },
            201,
            members=("{wanda}",),
            keeps={"group": "id"},
        ),
        Step("read the group", "GET", "/Groups/{group}", members=("{wanda}",)),
        Step(
            "rename the group",
            "PUT",
            "/Groups/{group}",
            group("Witches", "wanda"),
            shows={"displayName": "Witches"},
            members=("{wanda}",),
        ),
        Step(
            "deactivate",
            "PUT",
            "/Users/{wanda}",
            profile(id="{wanda}", active=False),
            shows={"active": False},
        ),
        Step("read", "GET", "/Users/{wanda}", shows={"active": False, "displayName": "Wanda Wizard"}),
        Step(
            "activate",
            "PUT",
            "/Users/{wanda}",
            profile(id="{wanda}"),
            shows={"active": True},
        ),
        Step("remove the member", "PUT", "/Groups/{group}", group("Witches"), members=()),
        Step("delete the group", "DELETE", "/Groups/{group}", status=204),
        Step("the group is gone", "GET", "/Groups/{group}", status=404),
        Step(
            "deactivate at last",
            "PUT",
            "/Users/{wanda}",
            profile(id="{wanda}", active=False),
            shows={"active": False},
        ),
    ),
    content_type="application/scim+json; charset=utf-8",
    headers={"User-Agent": "Okta SCIM Client 1.0.0", "Accept": "application/scim+json"},
)
