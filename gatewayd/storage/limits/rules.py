"""Store of the rules of limits."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.limits.amounts import format_budget, parse_budgets
from gatewayd.limits.records import LimitRule, LimitSubject
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.tables.limits import LimitRow

SUBJECT_TABLES: Final = {
    LimitSubject.KEY: "api_keys",
    LimitSubject.USER: "users",
    LimitSubject.GROUP: "groups",
    LimitSubject.MEMBER: "groups",
}
"""Tables of the subjects that can be deleted."""


class TortoiseLimitRules:
    """Implements `limits.interfaces.RuleStore`."""

    async def list(self) -> Sequence[LimitRule]:
        """Return all rules, oldest first."""
        with translate_errors("list limits"):
            rows = await LimitRow.all().order_by("created_at", "id")
        return [_rule_of(row) for row in rows]

    async def find(self, rule_id: str) -> LimitRule | None:
        """Return one rule."""
        if not fits_columns(LimitRow, id=rule_id):
            return None
        with translate_errors("read a limit"):
            row = await LimitRow.get_or_none(id=rule_id)
        return None if row is None else _rule_of(row)

    async def find_of(self, subject: LimitSubject, subject_id: str, model: str) -> LimitRule | None:
        """Return the rule of a subject and a model."""
        if not fits_columns(LimitRow, subject_id=subject_id, model=model):
            return None
        with translate_errors("read a limit"):
            row = await LimitRow.get_or_none(subject=subject.value, subject_id=subject_id, model=model)
        return None if row is None else _rule_of(row)

    async def put(self, rule: LimitRule) -> None:
        """Insert or replace a rule."""
        async with write_transaction("write the limit"):
            await upsert_rows(LimitRow, [_columns(rule)], ["id"])

    async def remove(self, rule_id: str) -> bool:
        """Delete a rule, its counters and their reservations."""
        if not fits_columns(LimitRow, id=rule_id):
            return False
        async with write_transaction("delete the limit"):
            return await LimitRow.filter(id=rule_id).delete() > 0

    async def remove_orphans(self) -> int:
        """Delete the rules of deleted subjects."""
        removed = 0
        async with write_transaction("delete limits") as client:
            for subject, table in SUBJECT_TABLES.items():
                rows = await client.execute_query_dict(
                    f"DELETE FROM limits WHERE subject = '{subject.value}'"  # noqa: S608 - no values
                    f' AND subject_id NOT IN (SELECT id FROM "{table}") RETURNING id'
                )
                removed += len(rows)
        return removed


def _columns(rule: LimitRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "subject": rule.subject.value,
        "subject_id": rule.subject_id,
        "subject_name": rule.subject_name,
        "model": rule.model,
        "requests_per_minute": rule.requests_per_minute,
        "tokens_per_minute": rule.tokens_per_minute,
        "parallel": rule.parallel,
        "budgets": encode([format_budget(each) for each in rule.budgets], "budgets"),
        "warn_percent": rule.warn_percent,
        "storage_bytes": rule.storage_bytes,
        "created_at": rule.created_at,
        "updated_at": rule.updated_at,
    }


def _rule_of(row: LimitRow) -> LimitRule:
    return LimitRule(
        id=row.id,
        subject=LimitSubject(row.subject),
        subject_id=row.subject_id,
        subject_name=row.subject_name,
        model=row.model,
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        parallel=row.parallel,
        budgets=parse_budgets(decode(row.budgets, f"the limit {row.id}")),
        warn_percent=row.warn_percent,
        storage_bytes=row.storage_bytes,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
