"""Reading steps: the first requests of identity providers, which change nothing."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayctl.scimcheck.common import check_error, expect, read_list, unexpected
from gatewayctl.scimcheck.records import Ask, Fault, Memory, ScimAnswer, Step

URN: Final = "urn:ietf:params:scim:schemas:core:2.0"
PAGE: Final = {"startIndex": "1", "count": "2"}
WRONG: Final = "no-such-token"


def _reached(answer: ScimAnswer, memory: Memory) -> str | Fault:
    if answer.is_html or answer.status not in {200, 401}:
        return unexpected(answer, (401,), memory)
    note = "" if memory["is_open"] == "no" else "; over plain HTTP, where everybody on the way sees the token"
    return f"the service answers{note}"


def _refused(answer: ScimAnswer, memory: Memory) -> str | Fault:
    if answer.status != 401 or answer.is_html:
        fault = unexpected(answer, (401,), memory)
        return Fault(fault.detail, fault.advice or "a wrong token must be refused")
    if "www-authenticate" not in answer.headers:
        return Fault("401 without the header WWW-Authenticate", "a proxy may remove it")
    return check_error(answer) or "a wrong token is refused"


def _accepted(answer: ScimAnswer, memory: Memory) -> str | Fault:
    memory["access"] = "yes"
    return "the token is accepted"


def _config(answer: ScimAnswer, memory: Memory) -> str | Fault:
    body = answer.resource
    for feature in ("patch", "filter"):
        if not _is_supported(body, feature):
            return Fault(f"{feature} is not supported", "is it another SCIM service?")
    bulk = body.get("bulk")
    if not isinstance(bulk, dict) or not isinstance(bulk.get("maxOperations"), int):
        return Fault("bulk.maxOperations is no number", "is it another SCIM service?")
    return "patch and filter are supported"


def _types(answer: ScimAnswer, memory: Memory) -> str | Fault:
    return _lists(answer, "endpoint", ("/Users", "/Groups"))


def _schemas(answer: ScimAnswer, memory: Memory) -> str | Fault:
    return _lists(answer, "id", (f"{URN}:User", f"{URN}:Group"))


def _nobody(answer: ScimAnswer, memory: Memory) -> str | Fault:
    found = read_list(answer)
    if isinstance(found, Fault):
        return found
    total, resources = found
    if total or resources:
        return Fault(f"{total} users match what matches nobody", "the filter is not understood")
    return "a filter that nobody matches gives an empty list"


def _first_users(answer: ScimAnswer, memory: Memory) -> str | Fault:
    found = read_list(answer)
    if isinstance(found, Fault):
        return found
    total, resources = found
    if len(resources) > int(PAGE["count"]):
        return Fault(f"{len(resources)} users on a page of {PAGE['count']}", "count is not understood")
    if any(not each.get("id") or not each.get("userName") for each in resources):
        return Fault("a user lacks id or userName")
    if resources:
        memory["user"] = str(resources[0]["id"])
    return f"users: {total}"


def _groups(answer: ScimAnswer, memory: Memory) -> str | Fault:
    found = read_list(answer)
    if isinstance(found, Fault):
        return found
    total, resources = found
    if any("members" in each for each in resources):
        return Fault("members are shown although they are excluded", "excludedAttributes is not understood")
    return f"groups: {total}"


def _bad_filter(answer: ScimAnswer, memory: Memory) -> str | Fault:
    return check_error(answer, "invalidFilter") or "a malformed filter is refused as invalidFilter"


def _missing(answer: ScimAnswer, memory: Memory) -> str | Fault:
    return check_error(answer) or "an unknown id is told with a SCIM error"


def _users(query: Mapping[str, str]) -> Ask:
    return Ask("GET", "/Users", query)


def _is_supported(body: Mapping[str, Any], feature: str) -> bool:
    value = body.get(feature)
    return isinstance(value, dict) and value.get("supported") is True


def _lists(answer: ScimAnswer, field: str, wanted: tuple[str, ...]) -> str | Fault:
    found = read_list(answer)
    if isinstance(found, Fault):
        return found
    there = {each.get(field) for each in found[1]}
    absent = [each for each in wanted if each not in there]
    return Fault(f"{', '.join(absent)} is absent") if absent else f"{len(there)} listed"


READING: Final = (
    Step("reach", lambda _: Ask("GET", "/ServiceProviderConfig", token=None), _reached),
    Step("wrong token", lambda _: Ask("GET", "/ServiceProviderConfig", token=WRONG), _refused),
    Step(
        "token",
        lambda _: _users({"count": "0"}),
        expect(200, then=_accepted),
    ),
    Step(
        "ServiceProviderConfig",
        lambda _: Ask("GET", "/ServiceProviderConfig"),
        expect(200, then=_config),
        ("access",),
    ),
    Step("ResourceTypes", lambda _: Ask("GET", "/ResourceTypes"), expect(200, then=_types), ("access",)),
    Step("Schemas", lambda _: Ask("GET", "/Schemas"), expect(200, then=_schemas), ("access",)),
    Step(
        "userName probe",
        lambda memory: _users({"filter": f'userName eq "{memory["random"]}@example.org"'}),
        expect(200, then=_nobody),
        ("access",),
    ),
    Step(
        "externalId probe",
        lambda memory: _users({"filter": f'externalId eq "{memory["random"]}"'}),
        expect(200, then=_nobody),
        ("access",),
    ),
    Step("first users", lambda _: _users(PAGE), expect(200, then=_first_users), ("access",)),
    Step(
        "groups without members",
        lambda _: Ask("GET", "/Groups", {**PAGE, "excludedAttributes": "members"}),
        expect(200, then=_groups),
        ("access",),
    ),
    Step(
        "malformed filter",
        lambda _: _users({"filter": 'userName eq "ada'}),
        expect(400, then=_bad_filter),
        ("access",),
    ),
    Step(
        "unknown user",
        lambda memory: Ask("GET", f"/Users/{memory['random']}"),
        expect(404, then=_missing),
        ("access",),
    ),
)
"""In the order of the providers: Entra ID's connection test sends the probes, Okta's the first users."""
