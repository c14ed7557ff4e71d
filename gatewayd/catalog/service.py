"""Catalog of all models of all sources, and the only place that decides who may use a model."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Final

from gatewayd import ids
from gatewayd.catalog.access_grants import Principals, admits, check_grant, principals_of
from gatewayd.catalog.custom_models import (
    Candidates,
    add_custom_models,
    check_base,
    check_family,
    check_picture,
)
from gatewayd.catalog.failover import Candidate, Failover
from gatewayd.catalog.interfaces import (
    LoadingSource,
    ModelRecordStore,
    ModelSource,
    PrefixedSource,
    Viewer,
)
from gatewayd.catalog.model_list import RETRY_SECONDS, SourceListing, source_states
from gatewayd.catalog.model_names import find_listed_name, model_name_variants
from gatewayd.catalog.records import FAMILY, Grant, Model, ModelRecord
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.metering.meter import CallMeter
from gatewayd.tasks import TaskRegistry
from gatewayd.time_slices import LoopPacer
from gatewayd.transactions import after_commit

FIRST_LIST_SECONDS: Final = 2.0
MAX_ID_LENGTH: Final = 256
CLAUDE_NAMES: Final = ("claude", "anthropic")
"""Beginnings of the ids that clients show that take names of Claude only."""


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Age and deadline of model lists in seconds, and exemptions from access lists.

    `alias_prefix` before the id of a model makes another name of it, in the lists of Anthropic clients.
    """

    max_age: float = 30.0
    deadline: float = 10.0
    alias_prefix: str = ""
    bypass_all: bool = False
    bypass_admins: bool = True


class Catalog:
    """Merges the model lists of the sources.

    If several sources list the same id, the last source comes first: it appears in listings and is tried
    first; the others are its fallbacks.
    """

    def __init__(
        self,
        records: ModelRecordStore,
        tasks: TaskRegistry,
        options: CatalogOptions,
        clock: ids.Clock = ids.now,
        meter: CallMeter | None = None,
        changing: Callable[[], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        self._store = records
        self._tasks = tasks
        self._options = options
        self._clock = clock
        self._listings: list[SourceListing] = []
        self._records: dict[str, ModelRecord] = {}
        self._principals: dict[str, Principals] = {}
        self._ordered: Sequence[Model] | None = None
        self._merged: dict[str, Candidates] | None = None
        self.meter = meter or CallMeter()
        """Meters the calls of the models; each caller of a source reports to it."""
        self.failover = Failover(move=self.meter.move)

        self._lock = asyncio.Lock()
        self.changing = changing or (lambda: self._lock)
        """Returns the block around reading a record and committing its change."""

    async def load(self, model_ids: Collection[str] | None = None) -> None:
        """Read the model records: all before the first use, and those that another process has changed."""
        if model_ids is None:
            self._records = {record.id: record for record in await self._store.list()}
            self._principals = {key: principals_of(record.grants) for key, record in self._records.items()}
            self._invalidate()
            return
        for model_id in model_ids:
            record = await self._store.find(model_id)
            self._drop(model_id) if record is None else self._put(record)

    def use(self, sources: Sequence[ModelSource]) -> Sequence[ModelSource]:
        """Replace the sources and start fetching their lists; return the sources no longer used."""
        kept = {id(item.source): item for item in self._listings}
        before = [item.source for item in self._listings]
        self._listings = [kept.get(id(source)) or self._listing(source) for source in sources]
        self._invalidate()
        for item in self._listings:
            item.refresh_when_due()
        return [source for source in before if all(source is not used for used in sources)]

    def source_states(self) -> Sequence[Mapping[str, object]]:
        """Return name, number of models and last problem of each source."""
        return source_states(self._listings)

    def listings(self) -> Sequence[SourceListing]:
        """Return the listing of each source, in their order."""
        return tuple(self._listings)

    async def refresh(self, source: object) -> None:
        """Fetch the list of one source, whose models have changed, and wait briefly for it."""
        for item in self._listings:
            if item.source is source:
                await self._tasks.finish(f"refresh of {item.source.name}", _ask_again(item))

    def renew(self, source: object) -> None:
        """Start a fetch of one source, whose models have changed; the next listing waits for it."""
        for item in self._listings:
            if item.source is source:
                item.renew()

    async def list(self, viewer: Viewer, *, refresh: bool = False) -> Sequence[Model]:
        """Return the models that the viewer may use, sorted by name."""
        await self._models(refresh=refresh)
        pace = LoopPacer()
        seen = []
        for model in self._by_name():
            if self._may_use(viewer, model.id):
                seen.append(model)
            await pace.turn()
        return seen

    def find_state(self) -> object | None:
        """Return an object that stays the same while no model, no record and no grant changes.

        None while `list` would wait. As there, a list of a source that is too old is read again.
        """
        for item in self._listings:
            item.refresh_when_due()
            if item.never_answered:
                return None
        return self._current()

    async def list_all(self) -> Sequence[Model]:
        """Return all models, sorted by name, without an access check."""
        await self._models(refresh=False)
        return self._by_name()

    async def candidates(self, model_id: str, viewer: Viewer) -> Sequence[Candidate[ModelSource]]:
        """Return the model as each of its sources offers it, in the order of attempts.

        A name without a tag stands for its tag `latest`. Raises not_found if the model does not exist or the
        viewer may not use it, and unavailable while the list of a source that may have it cannot be read.
        """
        merged = self._current()
        if model_id not in merged:
            merged = await self._models(refresh=False)
        found = merged.get(model_id) or merged.get(find_listed_name(model_id, merged))
        if found is None and await self._load(model_id):
            found = self._current().get(model_id)
        if found is None and (original := self._find_alias(model_id)):
            return await self.candidates(original, viewer)
        if found is None:
            self._check_unknown(model_id, viewer)
        if found is None or not self._may_use(viewer, found[0].model.id):
            raise GatewayError(
                ErrorKind.NOT_FOUND,
                f"Model not found: {model_id[:MAX_ID_LENGTH]!r}",
                param="model",
                code="model_not_found",
            )
        return found

    def find_candidates(self, model_id: str, viewer: Viewer) -> Sequence[Candidate[ModelSource]]:
        """Return what `candidates` returns if that needs no wait and refuses nothing, else an empty list."""
        found = self._current().get(model_id, ())
        return found if found and self._may_use(viewer, found[0].model.id) else ()

    def alias_of(self, model_id: str) -> str:
        """Return the name of a model in the lists of clients that take names of Claude only."""
        if model_id.startswith(CLAUDE_NAMES):
            return model_id
        return self._options.alias_prefix + model_id

    def _find_alias(self, model_id: str) -> str | None:
        """Return the id of the listed model whose alias a name is; None for other names."""
        prefix = self._options.alias_prefix
        original = model_id.removeprefix(prefix)
        if not prefix or original == model_id or original.startswith(CLAUDE_NAMES):
            return None
        listed = self._current()
        return original if find_listed_name(original, listed) in listed else None

    def _check_unknown(self, model_id: str, viewer: Viewer) -> None:
        """Raise unavailable if a source may have a model whose list could not be read since the start.

        The name may be an alias. Nothing is raised to a viewer who may not use the model.
        """
        names = [
            name
            for name in (model_id, model_id.removeprefix(self._options.alias_prefix))
            if self._may_use(viewer, name)
        ]
        for item in self._listings:
            prefix = item.source.model_prefix if isinstance(item.source, PrefixedSource) else ""
            if item.is_unknown and any(name.startswith(prefix) for name in names):
                raise GatewayError(
                    ErrorKind.UNAVAILABLE,
                    f"cannot tell whether there is a model {model_id[:MAX_ID_LENGTH]!r}: the list of"
                    f" {item.source.name} could not be read yet",
                    param="model",
                    code="models_unknown",
                    retry_after=RETRY_SECONDS,
                )

    async def get(self, model_id: str, viewer: Viewer) -> tuple[Model, ModelSource]:
        """Return the first candidate; raise not_found."""
        first = (await self.candidates(model_id, viewer))[0]
        return first.model, first.source

    def find_record(self, model_id: str) -> ModelRecord | None:
        """Return the record of a model, found by this name or by its variant."""
        known = self._records.get(model_id)
        return self._variant_record(model_id) if known is None and self._records else known

    def list_records(self) -> Sequence[ModelRecord]:
        """Return all model records, sorted by id."""
        return [self._records[key] for key in sorted(self._records)]

    def check_record(self, record: ModelRecord, known: Mapping[str, ModelRecord]) -> ModelRecord:
        """Return a record as `put_record` stores it beside the records `known`; raises as it does."""
        if not record.id or len(record.id) > MAX_ID_LENGTH:
            raise invalid(f"cannot store the model: id must have 1 to {MAX_ID_LENGTH} characters", param="id")
        record = self._as_listed(record)
        check_base(record, known)
        check_picture(record)
        check_family(record)
        for grant in record.grants:
            check_grant(grant)
        return record

    async def put_record(self, record: ModelRecord) -> ModelRecord:
        """Store a record with its grants and return it with its timestamps.

        The ids of the model and of its base become the spelling that the sources list. Raises invalid_request
        for an invalid id, base, picture or grant.
        """
        record = self.check_record(record, self._records)
        at = self._clock()
        known = self._records.get(record.id)
        stored = replace(record, updated_at=at, created_at=known.created_at if known else at)
        await self._store.put(stored)
        after_commit(lambda: self._put(stored))
        return stored

    async def remove_record(self, model_id: str) -> None:
        """Delete a record, after which only administrators may use the model. Raises not_found."""
        known = self.find_record(model_id)
        record_id = model_id if known is None else known.id
        if not await self._store.remove(record_id):
            raise not_found("model record", model_id)
        after_commit(lambda: self._drop(record_id))

    async def describe(self, record: ModelRecord, grants: Sequence[Grant] | None) -> ModelRecord:
        """Insert or replace a record; keep its owner, and without `grants` also its access list."""
        async with self.changing():
            known = self.find_record(record.id) or record
            kept = known.grants if grants is None else tuple(grants)
            return await self.put_record(replace(record, id=known.id, user_id=known.user_id, grants=kept))

    async def grant(self, model_id: str, grants: Sequence[Grant], *, by: str) -> ModelRecord:
        """Replace the access list of a model; create its record if there is none.

        Raises not_found if neither a record nor a source has the model.
        """
        # A source that has not answered yet is awaited here, outside of the transaction.
        await self._models(refresh=False)
        async with self.changing():
            return await self.regrant(model_id, grants, by=by)

    async def regrant(self, model_id: str, grants: Sequence[Grant], *, by: str) -> ModelRecord:
        """Do the same as `grant` for a caller that is inside `changing()`."""
        return await self.put_record(replace(await self._known(model_id, by), grants=tuple(grants)))

    async def name_family(self, model_id: str, family: str, *, by: str) -> ModelRecord:
        """Store the canonical id of a model, "" for none, in its record; create the record if there is none.

        The caller is inside `changing()`. Raises not_found, and invalid_request for an id that `check_family`
        refuses.
        """
        known = await self._known(model_id, by)
        kept = {name: value for name, value in (known.meta or {}).items() if name != FAMILY}
        return await self.put_record(replace(known, meta={**kept, FAMILY: family} if family else kept))

    async def _known(self, model_id: str, by: str) -> ModelRecord:
        """Return the record of a model, or a new one of `by` for a listed model without a record."""
        known = self.find_record(model_id)
        if known is not None:
            return known
        merged = await self._models(refresh=False)
        listed_id = find_listed_name(model_id, merged)
        if listed_id not in merged:
            raise not_found("model", model_id)
        return ModelRecord(id=listed_id, user_id=by, name=merged[listed_id][0].model.name)

    async def switch(self, model_id: str, *, active: bool) -> ModelRecord:
        """Enable or disable a recorded model for all users but administrators; not_found without a record."""
        async with self.changing():
            known = self.find_record(model_id)
            if known is None:
                raise not_found("model record", model_id)
            return await self.put_record(replace(known, is_active=active))

    def _may_use(self, viewer: Viewer, model_id: str) -> bool:
        if self._options.bypass_all or (viewer.is_admin and self._options.bypass_admins):
            return True
        record = self.find_record(model_id)
        if record is None or not record.is_active:
            return False
        return record.user_id == viewer.user_id or admits(self._principals[record.id], viewer)

    def _variant_record(self, model_id: str) -> ModelRecord | None:
        """Return the record stored under the other variant of a model name.

        Either only the variant is listed, or the variant is the unlisted one.
        """
        listed = self._current()
        for other in model_name_variants(model_id)[1:]:
            record = self._records.get(other)
            if record is None:
                continue
            if (other in listed and model_id not in listed) or (
                other not in listed and record.base_model_id is None
            ):
                return record
        return None

    def _as_listed(self, record: ModelRecord) -> ModelRecord:
        """Return a record whose id and base have the spelling of the sources."""
        listed = self._current()
        if record.base_model_id is not None:
            return replace(record, base_model_id=find_listed_name(record.base_model_id, listed))
        return (
            record if record.id in self._records else replace(record, id=find_listed_name(record.id, listed))
        )

    async def _models(self, *, refresh: bool) -> dict[str, Candidates]:
        for item in self._listings:
            item.refresh() if refresh else item.refresh_when_due()
        waiting = [item for item in self._listings if refresh or item.never_answered]
        if waiting:
            await _wait(waiting)
        return self._current()

    async def _load(self, model_id: str) -> bool:
        """Wait for a model, or its base, that a source is loading; return True if it was loaded."""
        record = self._records.get(model_id)
        name = model_id if record is None or record.base_model_id is None else record.base_model_id
        for item in self._listings:
            if isinstance(item.source, LoadingSource) and await item.source.load_model(name):
                await self.refresh(item.source)
                return True
        return False

    def _current(self) -> dict[str, Candidates]:
        if self._merged is None:
            merged: dict[str, Candidates] = {}
            for item in self._listings:
                for model in item.models:
                    merged[model.id] = (Candidate(model, item.source), *merged.get(model.id, ()))
            self._merged = add_custom_models(merged, self._records.values())
        return self._merged

    def _listing(self, source: ModelSource) -> SourceListing:
        item = SourceListing(
            source, self._tasks, max_age=self._options.max_age, deadline=self._options.deadline
        )
        item.on_change = self._invalidate
        return item

    def _put(self, record: ModelRecord) -> None:
        self._records[record.id] = record
        self._principals[record.id] = principals_of(record.grants)
        self._invalidate()

    def _drop(self, model_id: str) -> None:
        self._records.pop(model_id, None)
        self._principals.pop(model_id, None)
        self._invalidate()

    def _invalidate(self) -> None:
        self._merged = self._ordered = None

    def _by_name(self) -> Sequence[Model]:
        """Return all known models, sorted once for all callers."""
        if self._ordered is None:
            models = (found[0].model for found in self._current().values())
            self._ordered = sorted(models, key=lambda model: (model.name.casefold(), model.id))
        return self._ordered


async def _wait(waiting: Sequence[SourceListing]) -> None:
    """Wait briefly for the first lists, and only once for a slow source."""
    try:
        async with TimeLimit(FIRST_LIST_SECONDS):
            await asyncio.gather(*(item.first() for item in waiting))
    except TimeoutError:
        for item in waiting:
            item.give_up()


async def _ask_again(item: SourceListing) -> None:
    """Fetch a list that starts after this call; a running fetch may predate the change."""
    await _wait([item])
    item.refresh()
    await _wait([item])
