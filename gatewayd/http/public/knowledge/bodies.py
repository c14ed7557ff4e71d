"""Models of the request bodies for collections."""

from typing import Any, Self

from pydantic import Field, RootModel, model_validator

from gatewayd.catalog.records import Grant
from gatewayd.http.body import RequestBody
from gatewayd.knowledge.grants import from_access_control, read_grants
from gatewayd.knowledge.members import MAX_WAIT_SECONDS


class AccessBody(RequestBody):
    """An access list: `access_grants`, or the former `access_control` without them."""

    access_grants: Any = None
    access_control: Any = None

    def grants(self) -> tuple[Grant, ...] | None:
        """Return the grants, None for a body without either field."""
        if self.access_grants is not None:
            return read_grants(self.access_grants)
        if "access_control" in self.model_fields_set:
            return from_access_control(self.access_control)
        return None


class ShareBody(AccessBody):
    """An access list that replaces another."""

    @model_validator(mode="after")
    def _has_list(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("expected access_grants")
        return self


class CollectionBody(AccessBody):
    """A new collection; private without an access list."""

    name: str
    description: str = ""
    meta: dict[str, Any] | None = None


class CollectionChangeBody(AccessBody):
    """A change of a collection. Absent and null fields keep their values."""

    name: str | None = None
    description: str | None = None
    meta: dict[str, Any] | None = None


class MemberBody(RequestBody):
    """A file of a collection."""

    file_id: str


class AdditionBody(MemberBody):
    """A file to add to a collection; `wait` is the seconds to wait for the end of its processing."""

    directory_id: str | None = None
    wait: float = Field(default=0.0, ge=0.0, le=MAX_WAIT_SECONDS)


class BatchBody(RootModel[list[AdditionBody]]):
    """Files to add to a collection."""
