"""Names of runtime models: a name without a tag stands for the tag `latest`; pure."""

from collections.abc import Container
from typing import Final

LATEST_TAG: Final = ":latest"


def model_name_variants(name: str) -> tuple[str, ...]:
    """Return the ids that a name may stand for, the name itself first; no tag stands for `latest`."""
    if name.endswith(LATEST_TAG):
        return name, name.removesuffix(LATEST_TAG)
    return (name,) if ":" in name.rpartition("/")[2] else (name, name + LATEST_TAG)


def find_listed_name(name: str, listed: Container[str]) -> str:
    """Return the variant of a name that is listed, or the name itself if none is."""
    return next((spelling for spelling in model_name_variants(name) if spelling in listed), name)
