"""The rules of a family, found in the tables of the makers; pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from gatewayd.dialects.providers import tables_anthropic, tables_makers, tables_openai
from gatewayd.dialects.providers.family import Family
from gatewayd.dialects.providers.rules import NO_RULES, FamilyRow, Rules

TABLES: Final[Mapping[str, Sequence[FamilyRow]]] = {
    "openai": tables_openai.ROWS,
    "azure": tables_openai.AZURE_ROWS,
    "anthropic": tables_anthropic.ROWS,
    **tables_makers.ROWS,
    **tables_makers.ENGINE_ROWS,
}
"""The table of each maker."""

PROXIED: Final[Mapping[str, Sequence[FamilyRow]]] = {
    "openai": tables_openai.PROXIED_ROWS,
    "anthropic": tables_anthropic.PROXIED_ROWS,
}
"""The tables for models of these makers behind a server whose maker is unknown."""


def find_rules(family: Family) -> Rules:
    """Return the rules of a family; `NO_RULES` for one that nothing is known about.

    A model of OpenAI or Anthropic keeps its rules behind a server of an unknown maker.
    """
    if family.maker in TABLES:
        return _match(family.maker, family.name, is_proxied=False)
    if not family.maker and family.origin in PROXIED:
        return _match(family.origin, family.name, is_proxied=True)
    return NO_RULES


def find_message_rules(family: Family) -> Rules:
    """Return the rules of a family that is reached in the Anthropic protocol."""
    is_claude = family.maker == "anthropic" or family.origin == "anthropic"
    return _match("anthropic", family.name, is_proxied=False) if is_claude else NO_RULES


@lru_cache(maxsize=4096)
def _match(maker: str, name: str, *, is_proxied: bool) -> Rules:
    rows = PROXIED[maker] if is_proxied else TABLES[maker]
    return next((row.rules for row in rows if re.fullmatch(row.pattern, name)), NO_RULES)


def every_row() -> Iterator[tuple[str, FamilyRow]]:
    """Yield each maker with each of its rows, in the order of the page."""
    for maker, rows in TABLES.items():
        for row in rows:
            yield maker, row
