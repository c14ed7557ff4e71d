"""The service of limits over stores in memory, at one noon."""

from gatewayd.limits.admission import LimitAdmission, LimitOptions
from gatewayd.limits.ledger import BudgetLedger
from gatewayd.limits.memory_rates import MemoryRates
from gatewayd.limits.service import Limits
from gatewayd.metering.meter import no_price
from tests.fakes.limits.memory_budgets import MemoryBudgets
from tests.fakes.limits.memory_rules import MemoryLimitRules

NOON = 1_800_014_400


class LimitBench:
    """The service over stores in memory."""

    def __init__(self) -> None:
        self.rules, self.budgets, self.rates = MemoryLimitRules(), MemoryBudgets(), MemoryRates(lambda: 0.0)
        ledger = BudgetLedger(self.budgets)
        self.admission = LimitAdmission(
            self.rates, ledger, lambda: no_price, lambda _: "", LimitOptions(), lambda: NOON
        )
        self.limits = Limits(self.rules, self.rates, self.budgets, self.admission, lambda: NOON)

    def pots(self, user_id: str = "u1") -> list[str]:
        return [pot.owner for pot in self.admission.book.plan("", user_id, (), "m", "").pots]
