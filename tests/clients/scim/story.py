"""What a story of an identity provider is made of: requests as they are sent, and what must come back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
SCIM_JSON = "application/scim+json"
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Step:
    """One request and its answer.

    `{name}` in the path, in texts of the body and in what is expected stands for what an earlier step kept
    under that name. `shows` has what stands at a dotted place, such as `Resources.0.userName`; `filled`
    places that are there and not empty, `lacks` places that are not there. `members` are the ids of exactly
    the members. `keeps` gives names to what stands at a place.
    """

    what: str
    method: str
    path: str
    body: Any = None
    status: int = 200
    scim_type: str | None = None
    shows: Mapping[str, Any] = field(default_factory=dict)
    filled: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    members: tuple[str, ...] | None = None
    total: int | None = None
    keeps: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pages:
    """A list read to its end as a provider does it; `path` is asked with {start} from 1 on.

    Everything must come once, and what `holds` the ids of must be among it.
    """

    what: str
    path: str
    holds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Story:
    """What a provider sends from its first test of the connection until it deletes what it made.

    The `headers` go with every request, the content type with those that have a body; a provider that sends
    it always has it among the headers.
    """

    provider: str
    steps: tuple[Step | Pages, ...]
    content_type: str = SCIM_JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def patch(*operations: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a PATCH request."""
    return {"schemas": [PATCH_OP], "Operations": list(operations)}


def op(verb: str, path: str | None = None, **value: Any) -> dict[str, Any]:
    """Return one operation; `value=` as it is sent, nothing when it is left out."""
    where = {} if path is None else {"path": path}
    return {"op": verb, **where, **value}


def work_email(address: str) -> list[dict[str, Any]]:
    """Return how one e-mail address of a user is shown."""
    return [{"value": address, "type": "work", "primary": True}]
