"""The service of limits over stores in memory, at one noon."""

from gatewayd.limits.admission import LimitAdmission, LimitOptions
from gatewayd.limits.ledger import BudgetLedger
from gatewayd.limits.memory_rates import MemoryRates
from gatewayd.limits.service import Limits
from gatewayd.limits.storage_quotas import StorageQuotas
from gatewayd.metering.meter import no_price
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.limits.memory_budgets import MemoryBudgets
from tests.fakes.limits.memory_rules import MemoryLimitRules
from tests.fakes.limits.memory_sizes import MemorySizes

NOON = 1_800_014_400


class LimitBench:
    """The service over stores in memory."""

    def __init__(self) -> None:
        self.rules, self.budgets, self.rates = MemoryLimitRules(), MemoryBudgets(), MemoryRates(lambda: 0.0)
        self.sizes = MemorySizes()
        ledger = BudgetLedger(self.budgets)
        self.admission = LimitAdmission(
            self.rates, ledger, lambda: no_price, lambda _: "", LimitOptions(), lambda: NOON
        )
        self.quotas = StorageQuotas(self.sizes, self.sizes.groups_of, Memory())
        self.limits = self.restarted()

    def restarted(self) -> Limits:
        """Return the service of another process over the same stores."""
        stores = (self.rules, self.rates, self.budgets)
        return Limits(*stores, self.admission, self.quotas, lambda: NOON)

    def pots(self, user_id: str = "u1") -> list[str]:
        return [pot.owner for pot in self.admission.book.plan("", user_id, (), "m", "").pots]
