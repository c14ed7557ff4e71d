"""Store of model records and their access lists."""

from collections.abc import Sequence

from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.storage import grants
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.grants import GrantResource
from gatewayd.storage.tables.accounts import ModelRow


class TortoiseModels:
    """Implements `catalog.interfaces.ModelRecordStore`."""

    async def list(self) -> Sequence[ModelRecord]:
        """Return all records by id, in two queries."""
        with translate_errors("list model records"):
            rows = await ModelRow.all().order_by("id")
            lists = await grants.read_all(GrantResource.MODEL)
        return [_record_of(row, lists.get(row.id, ())) for row in rows]

    async def find(self, model_id: str) -> ModelRecord | None:
        """Return one record."""
        if not fits_columns(ModelRow, id=model_id):
            return None
        with translate_errors("read a model record"):
            row = await ModelRow.get_or_none(id=model_id)
            if row is None:
                return None
            lists = await grants.read(GrantResource.MODEL, [model_id])
        return _record_of(row, lists.get(model_id, ()))

    async def put(self, record: ModelRecord) -> None:
        """Insert or replace a record and its grants as one change."""
        columns = {
            "user_id": record.user_id,
            "name": record.name,
            "base_model_id": record.base_model_id,
            "params": encode(record.params, "params"),
            "meta": encode(record.meta, "meta"),
            "is_active": record.is_active,
            "updated_at": record.updated_at,
            "created_at": record.created_at,
        }
        async with write_transaction("store the model record"):
            row = ModelRow(id=record.id, **columns)
            await ModelRow.bulk_create([row], on_conflict=["id"], update_fields=list(columns))
            await grants.write(GrantResource.MODEL, record.id, record.grants)

    async def remove(self, model_id: str) -> bool:
        """Delete a record and its grants."""
        if not fits_columns(ModelRow, id=model_id):
            return False
        async with write_transaction("remove the model record"):
            # The order of `put` prevents a deadlock.
            removed = await ModelRow.filter(id=model_id).delete() > 0
            await grants.remove(GrantResource.MODEL, model_id)
        return removed


def _record_of(row: ModelRow, access: Sequence[Grant]) -> ModelRecord:
    return ModelRecord(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        base_model_id=row.base_model_id,
        params=decode(row.params, f"the params of model {row.id}"),
        meta=decode(row.meta, f"the meta of model {row.id}"),
        is_active=row.is_active,
        grants=tuple(access),
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
