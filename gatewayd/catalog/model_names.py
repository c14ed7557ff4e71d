"""Names of models: a name of a local runtime without a tag means its tag `latest`; pure."""

from collections.abc import Container
from typing import Final

LATEST: Final = ":latest"


def spellings(name: str) -> tuple[str, ...]:
    """Return the ids that a name may mean, the name itself first: no tag is the tag `latest`."""
    if name.endswith(LATEST):
        return name, name.removesuffix(LATEST)
    return (name,) if ":" in name.rpartition("/")[2] else (name, name + LATEST)


def listed_as(name: str, listed: Container[str]) -> str:
    """Return the spelling of a name that is listed, the name itself when none is."""
    return next((spelling for spelling in spellings(name) if spelling in listed), name)
