"""Translation of the parameters of a list request to a query of the directory (RFC 7644 section 3.4.2)."""

from collections.abc import Mapping
from typing import Final

from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.scim.attributes import AttributeType, attributes_by_path, find_attribute
from gatewayd.scim.external_ids import EXTERNAL_ID, check_provider
from gatewayd.scim.filters.conditions import Condition
from gatewayd.scim.filters.grammar import parse_filter
from gatewayd.scim.filters.resolver import compile_filter, mentions_attribute
from gatewayd.scim.records import ResourceQuery, ResourceType, SearchParameters

DEFAULT_COUNT: Final = 100
MAX_COUNT: Final = 200
# More than any number of resources, and within the integers of every database.
MAX_START_INDEX: Final = 1_000_000_000

PARAMETERS: Final[Mapping[str, str]] = {
    name.lower(): name
    for name in ("filter", "startIndex", "count", "sortBy", "sortOrder", "attributes", "excludedAttributes")
}
"""Parameters of a list request (RFC 7644 sections 3.4.2 and 3.9), by name in lower case."""

# Sortable types of single-valued attributes; a multi-valued attribute is sorted by its primary value.
_SORTABLE: Final = frozenset({AttributeType.STRING, AttributeType.BOOLEAN, AttributeType.DATE_TIME})
# Not sortable: all resources of a type have the same value.
_CONSTANT: Final = "meta.resourceType"
_PRIMARY: Final[Mapping[str, str]] = {"emails": "emails.value"}


def plan_query(search: SearchParameters, resource: ResourceType, provider: str) -> ResourceQuery:
    """Return the query of a list request; numbers are clamped to their range.

    Raises invalid_request, code `invalidFilter` or `invalidValue`, and not_configured if it uses the external
    id without a configured provider.
    """
    condition = None
    if search.filter is not None:
        condition = compile_filter(parse_filter(search.filter), resource)
    sort = None if search.sort_by is None else _sort(search.sort_by, resource)
    if sort == EXTERNAL_ID or _mentions_external_id(condition):
        check_provider(provider)
    return ResourceQuery(
        condition=condition,
        provider=provider,
        sort=sort,
        descending=search.descending and sort is not None,
        offset=start_index_of(search) - 1,
        limit=_count(search),
    )


def start_index_of(search: SearchParameters) -> int:
    """Return the index of the first resource of the page, from 1."""
    start = 1 if search.start_index is None else search.start_index
    return min(max(start, 1), MAX_START_INDEX)


def _mentions_external_id(condition: Condition | None) -> bool:
    return condition is not None and mentions_attribute(condition, EXTERNAL_ID)


def _count(search: SearchParameters) -> int:
    count = DEFAULT_COUNT if search.count is None else search.count
    return min(max(count, 0), MAX_COUNT)


def _sort(name: str, resource: ResourceType) -> str:
    target = find_attribute(resource, name)
    if target is None:
        raise _unsortable(name, "there is no such attribute")
    target = attributes_by_path(resource)[_PRIMARY.get(target.name, target.name).lower()]
    whole = target.parent or target.attribute
    is_single = not whole.is_multiple or target.name in _PRIMARY.values()
    if not is_single or target.attribute.kind not in _SORTABLE or target.name == _CONSTANT:
        raise _unsortable(name, "it has no single sortable value")
    return target.name


def _unsortable(name: str, why: str) -> GatewayError:
    return invalid(f"cannot sort by sortBy {shorten(name)!r}: {why}", param="sortBy", code="invalidValue")
