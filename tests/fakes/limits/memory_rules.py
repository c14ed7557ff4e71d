"""Rules of limits in memory."""

from collections.abc import Sequence

from gatewayd.limits.records import LimitRule, LimitSubject


class MemoryLimitRules:
    """Implements `limits.interfaces.RuleStore` without a database; nothing is orphaned."""

    def __init__(self) -> None:
        self.rules: dict[str, LimitRule] = {}

    async def list(self) -> Sequence[LimitRule]:
        return list(self.rules.values())

    async def find(self, rule_id: str) -> LimitRule | None:
        return self.rules.get(rule_id)

    async def find_of(self, subject: LimitSubject, subject_id: str, model: str) -> LimitRule | None:
        wanted = (subject, subject_id, model)
        found = (
            each for each in self.rules.values() if (each.subject, each.subject_id, each.model) == wanted
        )
        return next(found, None)

    async def put(self, rule: LimitRule) -> None:
        self.rules[rule.id] = rule

    async def remove(self, rule_id: str) -> bool:
        return self.rules.pop(rule_id, None) is not None

    async def remove_orphans(self) -> int:
        return 0
