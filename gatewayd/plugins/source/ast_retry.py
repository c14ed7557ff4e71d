"""Syntax trees, made while other threads make some too."""

from collections.abc import Callable
from typing import Final, TypeVar

Result = TypeVar("Result")

MAX_ATTEMPTS: Final = 10


def retry_ast_parse(work: Callable[[], Result]) -> Result:
    """Return what `work` returns, which calls `ast.parse` or `ast.literal_eval`; done again when disturbed.

    Before Python 3.13 the depth of a tree is counted in one place for all threads. When another one gets its
    turn meanwhile, which the collection of garbage may cause, SystemError says that depths mismatch.
    """
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return work()
        except SystemError:
            continue
    return work()
