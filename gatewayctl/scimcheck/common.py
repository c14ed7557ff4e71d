"""Common judgements of the steps: unexpected statuses, errors, lists, and advice."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from gatewayctl.sanitize import clean
from gatewayctl.scimcheck.records import Fault, Memory, ScimAnswer

ERROR_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
LIST_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
SHOWN: Final = 200

Judge = Callable[[ScimAnswer, Memory], str | Fault]


def expect(*statuses: int, then: Judge) -> Judge:
    """Return a judge that passes answers with these statuses to `then` and explains others."""

    def judge(answer: ScimAnswer, memory: Memory) -> str | Fault:
        if answer.status not in statuses or (answer.is_html and answer.status != 204):
            return unexpected(answer, statuses, memory)
        return then(answer, memory)

    return judge


def unexpected(answer: ScimAnswer, expected: tuple[int, ...], memory: Memory) -> Fault:
    """Explain an answer with an unexpected status."""
    wanted = " or ".join(map(str, expected))
    told = f"{answer.status} instead of {wanted}{_said(answer)}"
    if answer.is_html:
        return Fault(
            f"a page for people with status {answer.status}, instead of SCIM with {wanted}",
            "a proxy or another site answers: let it pass /api/v1/scim/v2 on to gatewayd as it is",
        )
    match answer.status:
        case 301 | 302 | 303 | 307 | 308:
            target = clean(answer.headers.get("location", "elsewhere"))
            return Fault(
                f"a redirect to {target}",
                "providers follow none: give them the address that it leads to",
            )
        case 401:
            return Fault(told, _token_advice(memory))
        case 403:
            return Fault(told, "a proxy may admit other addresses only, or strip Authorization")
        case 404:
            return Fault(told, "check the base address: it ends with /api/v1/scim/v2")
        case 500 if _is_about_provider(answer):
            return Fault(told, "set scim_auth_provider in gatewayd.toml(5) and restart gatewayd")
        case 502 | 503 | 504:
            return Fault(told, "the proxy does not reach gatewayd, or gatewayd not its database")
        case status if status >= 500:
            return Fault(told, "the daemon's log has the details")
        case _:
            return Fault(told)


def check_error(answer: ScimAnswer, scim_type: str | None = None) -> Fault | None:
    """Return a fault unless the body is an error as in RFC 7644, 3.12."""
    body = answer.resource
    if ERROR_SCHEMA not in _texts(body.get("schemas")):
        return Fault("the body is no SCIM error", "a proxy may answer in the gateway's place")
    if body.get("status") != str(answer.status):
        return Fault(f"the SCIM error says status {body.get('status')!r}, the answer {answer.status}")
    if scim_type is not None and body.get("scimType") != scim_type:
        return Fault(f"the SCIM error is {body.get('scimType')!r} instead of {scim_type!r}")
    return None


def read_list(answer: ScimAnswer) -> tuple[int, list[Mapping[str, Any]]] | Fault:
    """Return the total and the resources of a list, or a fault."""
    body = answer.resource
    if LIST_SCHEMA not in _texts(body.get("schemas")):
        return Fault("the body is no SCIM list")
    total, resources = body.get("totalResults"), body.get("Resources", [])
    if not isinstance(total, int) or not isinstance(resources, list):
        return Fault("the list lacks totalResults or Resources")
    return total, [each for each in resources if isinstance(each, dict)]


def fingerprint(token: str) -> str:
    """Return the beginning of the SHA-256 of a token, as in `scim-token show`."""
    return hashlib.sha256(token.encode()).hexdigest()[:12]


def _token_advice(memory: Memory) -> str:
    return (
        f"the token given has the fingerprint {memory.get('fingerprint', 'unknown')}: compare it with "
        "gatewayctl scim-token show; gatewayctl scim status tells whether SCIM is on; a proxy may strip "
        "Authorization"
    )


def _is_about_provider(answer: ScimAnswer) -> bool:
    return "SCIM_AUTH_PROVIDER" in str(answer.resource.get("detail", ""))


def _said(answer: ScimAnswer) -> str:
    detail = answer.resource.get("detail")
    return f": {clean(detail)[:SHOWN]}" if isinstance(detail, str) and detail else ""


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
