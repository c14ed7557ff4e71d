"""The catalogue: all models of all sources, and the one place that decides who may use which."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gatewayd import ids
from gatewayd.catalog.access_grants import Principals, admits, check_grant, principals_of
from gatewayd.catalog.custom_models import Candidates, add_custom_models, check_base
from gatewayd.catalog.failover import Candidate, Failover
from gatewayd.catalog.interfaces import LoadingSource, ModelRecordStore, ModelSource, Viewer
from gatewayd.catalog.model_list import SourceListing, source_states
from gatewayd.catalog.model_names import find_listed_name, model_name_variants
from gatewayd.catalog.records import Grant, Model, ModelRecord
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.tasks import TaskRegistry
from gatewayd.time_slices import LoopPacer
from gatewayd.transactions import after_commit

FIRST_LIST_SECONDS: Final = 2.0
MAX_ID_LENGTH: Final = 256


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Seconds a list stays fresh and a source may take; who is exempt from access lists (9.2)."""

    max_age: float = 30.0
    deadline: float = 10.0
    bypass_all: bool = False
    bypass_admins: bool = True


class Catalog:
    """Merges the sources' lists, oldest source first.

    When several list the same id, the last one is what listings show and is asked first, the others when it
    cannot answer.
    """

    def __init__(
        self,
        records: ModelRecordStore,
        tasks: TaskRegistry,
        options: CatalogOptions,
        clock: ids.Clock = ids.now,
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
        self.failover = Failover()

        self.changing = asyncio.Lock()
        """Held by whoever reads a record in order to change it, until the change is committed."""

    async def load(self) -> None:
        """Read the model records; call once before the first use."""
        self._records = {record.id: record for record in await self._store.list()}
        self._principals = {key: principals_of(record.grants) for key, record in self._records.items()}

    def use(self, sources: Sequence[ModelSource]) -> Sequence[ModelSource]:
        """Take these sources from now on and begin to ask them; return the ones no longer used."""
        kept = {id(item.source): item for item in self._listings}
        before = [item.source for item in self._listings]
        self._listings = [kept.get(id(source)) or self._listing(source) for source in sources]
        self._forget()
        for item in self._listings:
            item.refresh_when_due()
        return [source for source in before if all(source is not used for used in sources)]

    def source_states(self) -> Sequence[Mapping[str, object]]:
        """Return name, number of models and last problem of each source."""
        return source_states(self._listings)

    def listings(self) -> Sequence[SourceListing]:
        """Return what is known of each source, in their order."""
        return tuple(self._listings)

    async def refresh(self, source: object) -> None:
        """Ask one source again, whose models have just changed, and wait for its list, but not long."""
        for item in self._listings:
            if item.source is source:
                await self._tasks.finish(f"refresh of {item.source.name}", _ask_again(item))

    def renew(self, source: object) -> None:
        """Begin to ask one source again, whose models have just changed; whoever lists next waits for it."""
        for item in self._listings:
            if item.source is source:
                item.renew()

    async def list(self, viewer: Viewer, *, refresh: bool = False) -> Sequence[Model]:
        """Return the models that the viewer may use, by name."""
        await self._models(refresh=refresh)
        pace = LoopPacer()
        seen = []
        for model in self._by_name():
            if self._may_use(viewer, model.id):
                seen.append(model)
            await pace.turn()
        return seen

    async def list_all(self) -> Sequence[Model]:
        """Return every model, by name, whoever may use it."""
        await self._models(refresh=False)
        return self._by_name()

    async def candidates(self, model_id: str, viewer: Viewer) -> Sequence[Candidate[ModelSource]]:
        """Return the model as each of its sources has it, the first to ask first.

        A name without a tag also means its tag `latest`. Raises not_found when there is no such model or the
        viewer may not use it.
        """
        merged = self._current()
        if model_id not in merged:
            merged = await self._models(refresh=False)
        found = merged.get(model_id) or merged.get(find_listed_name(model_id, merged))
        if found is None and await self._load(model_id):
            found = self._current().get(model_id)
        if found is None or not self._may_use(viewer, found[0].model.id):
            raise GatewayError(
                ErrorKind.NOT_FOUND,
                f"Model not found: {model_id[:MAX_ID_LENGTH]!r}",
                param="model",
                code="model_not_found",
            )
        return found

    async def get(self, model_id: str, viewer: Viewer) -> tuple[Model, ModelSource]:
        """Return the first of the candidates; raises not_found."""
        first = (await self.candidates(model_id, viewer))[0]
        return first.model, first.source

    def find_record(self, model_id: str) -> ModelRecord | None:
        """Return what an administrator keeps about a model, under this name or its other spelling."""
        known = self._records.get(model_id)
        return self._spelled_record(model_id) if known is None and self._records else known

    def list_records(self) -> Sequence[ModelRecord]:
        """Return all model records by id."""
        return [self._records[key] for key in sorted(self._records)]

    async def put_record(self, record: ModelRecord) -> ModelRecord:
        """Store a record with its grants and return it with its timestamps.

        The record of a listed model has the id that its source lists, and so has its base. Raises
        invalid_request for an id, a base or a grant that cannot be.
        """
        if not record.id or len(record.id) > MAX_ID_LENGTH:
            raise invalid(f"cannot store the model: id must have 1 to {MAX_ID_LENGTH} characters", param="id")
        record = self._as_listed(record)
        check_base(record, self._records)
        for grant in record.grants:
            check_grant(grant)
        at = self._clock()
        known = self._records.get(record.id)
        stored = replace(record, updated_at=at, created_at=known.created_at if known else at)
        await self._store.put(stored)
        after_commit(lambda: self._put(stored))
        return stored

    async def remove_record(self, model_id: str) -> None:
        """Delete a record; only administrators can use the model then. Raises not_found."""
        known = self.find_record(model_id)
        kept_id = model_id if known is None else known.id
        if not await self._store.remove(kept_id):
            raise not_found("model record", model_id)
        after_commit(lambda: self._take(kept_id))

    async def describe(self, record: ModelRecord, grants: Sequence[Grant] | None) -> ModelRecord:
        """Insert or replace a record; its owner and, without `grants`, its access list stay as they are."""
        async with self.changing:
            known = self.find_record(record.id) or record
            kept = known.grants if grants is None else tuple(grants)
            return await self.put_record(replace(record, id=known.id, user_id=known.user_id, grants=kept))

    async def grant(self, model_id: str, grants: Sequence[Grant], *, by: str) -> ModelRecord:
        """Replace the access list of a model, making its record when there is none.

        Raises not_found for a model that neither a record nor a source has.
        """
        async with self.changing:
            return await self.regrant(model_id, grants, by=by)

    async def regrant(self, model_id: str, grants: Sequence[Grant], *, by: str) -> ModelRecord:
        """Be `grant` for a caller that already holds `changing`."""
        known = self.find_record(model_id)
        if known is None:
            merged = await self._models(refresh=False)
            listed_id = find_listed_name(model_id, merged)
            if listed_id not in merged:
                raise not_found("model", model_id)
            known = ModelRecord(id=listed_id, user_id=by, name=merged[listed_id][0].model.name)
        return await self.put_record(replace(known, grants=tuple(grants)))

    async def switch(self, model_id: str, *, active: bool) -> ModelRecord:
        """Switch a recorded model on or off for everybody but administrators; not_found without a record."""
        async with self.changing:
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

    def _spelled_record(self, model_id: str) -> ModelRecord | None:
        """Return the record of a model under the other spelling of its name.

        Either the name is not listed and the other one is, or the other way round.
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
        """Return a record whose id and base are spelled as sources list them."""
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
        """Wait for a model, or its base, that a source is still loading; tell whether it has been."""
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
        item.on_change = self._forget
        return item

    def _put(self, record: ModelRecord) -> None:
        self._records[record.id] = record
        self._principals[record.id] = principals_of(record.grants)
        self._forget()

    def _take(self, model_id: str) -> None:
        self._records.pop(model_id, None)
        self._principals.pop(model_id, None)
        self._forget()

    def _forget(self) -> None:
        self._merged = self._ordered = None

    def _by_name(self) -> Sequence[Model]:
        """Return what is known of all models now, sorted once for all who list."""
        if self._ordered is None:
            models = (found[0].model for found in self._current().values())
            self._ordered = sorted(models, key=lambda model: (model.name.casefold(), model.id))
        return self._ordered


async def _wait(waiting: Sequence[SourceListing]) -> None:
    """Wait for the first answers, but not long, and only once for a source that takes longer."""
    try:
        async with TimeLimit(FIRST_LIST_SECONDS):
            await asyncio.gather(*(item.first() for item in waiting))
    except TimeoutError:
        for item in waiting:
            item.give_up()


async def _ask_again(item: SourceListing) -> None:
    """Fetch a list that was asked for after this moment: one that is on its way may be too old."""
    await _wait([item])
    item.refresh()
    await _wait([item])
