"""One SCIM request for each row, which succeeds for whoever has the SCIM token."""

from collections.abc import Callable
from typing import Any

from gatewayd.accounts.records import Role
from tests.fakes.daemons.role_site import Site
from tests.fakes.http.samples import Row

ScimSample = Callable[[Site], tuple[str, Any, int]]
"""Makes the path and body of the request, and the status of its answer."""

ROOT = "/api/v1/scim/v2"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"


def plain(path: str, body: Any = None, status: int = 200) -> ScimSample:
    return lambda _: (ROOT + path, body, status)


def with_user(make: Callable[[int], Any] = lambda _: None, status: int = 200) -> ScimSample:
    return lambda site: (f"{ROOT}/Users/{site.add(Role.USER)[0]}", make(next(site.numbers)), status)


def with_group(make: Callable[[int], Any] = lambda _: None, status: int = 200) -> ScimSample:
    return lambda site: (f"{ROOT}/Groups/{site.add_group()}", make(next(site.numbers)), status)


def user(number: int) -> Any:
    return {"schemas": [USER], "userName": f"s{number}@example.org"}


def group(number: int) -> Any:
    return {"schemas": [GROUP], "displayName": f"s{number}"}


def patch(number: int) -> Any:
    return {"Operations": [{"op": "replace", "path": "displayName", "value": f"p{number}"}]}


SCIM_SAMPLES: dict[Row, ScimSample] = {
    ("POST", f"{ROOT}/Users"): lambda site: (f"{ROOT}/Users", user(next(site.numbers)), 201),
    ("GET", f"{ROOT}/Users/{{id}}"): with_user(),
    ("PUT", f"{ROOT}/Users/{{id}}"): with_user(user),
    ("PATCH", f"{ROOT}/Users/{{id}}"): with_user(patch),
    ("DELETE", f"{ROOT}/Users/{{id}}"): with_user(status=204),
    ("GET", f"{ROOT}/Users"): plain("/Users"),
    ("POST", f"{ROOT}/Users/.search"): plain("/Users/.search", {}),
    ("POST", f"{ROOT}/Groups"): lambda site: (f"{ROOT}/Groups", group(next(site.numbers)), 201),
    ("GET", f"{ROOT}/Groups/{{id}}"): with_group(),
    ("PUT", f"{ROOT}/Groups/{{id}}"): with_group(group),
    ("PATCH", f"{ROOT}/Groups/{{id}}"): with_group(patch, 204),
    ("DELETE", f"{ROOT}/Groups/{{id}}"): with_group(status=204),
    ("GET", f"{ROOT}/Groups"): plain("/Groups"),
    ("POST", f"{ROOT}/Groups/.search"): plain("/Groups/.search", {}),
    ("GET", f"{ROOT}/ServiceProviderConfig"): plain("/ServiceProviderConfig"),
    ("GET", f"{ROOT}/ResourceTypes"): plain("/ResourceTypes"),
    ("GET", f"{ROOT}/ResourceTypes/{{id}}"): plain("/ResourceTypes/User"),
    ("GET", f"{ROOT}/Schemas"): plain("/Schemas"),
    ("GET", f"{ROOT}/Schemas/{{id}}"): plain(f"/Schemas/{GROUP}"),
    ("GET", ROOT): plain("", status=501),
    ("POST", f"{ROOT}/.search"): plain("/.search", {}, 501),
    ("POST", f"{ROOT}/Bulk"): plain("/Bulk", {"Operations": []}, 501),
    **{
        (method, f"{ROOT}/Me"): plain("/Me", None if method in {"GET", "DELETE"} else {}, 501)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    },
}
