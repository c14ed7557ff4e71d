"""The rules of a family, found in the tables of the makers; pure."""

from gatewayd.dialects.providers.family import Family
from gatewayd.dialects.providers.rules import NO_RULES, Rules


def find_rules(family: Family) -> Rules:
    """Return the rules of a family; `NO_RULES` for one that nothing is known about."""
    return NO_RULES
