"""Sources that the checker found safe, each as a digest of what it was given and of the checker itself.

The checker gives the same answer each time, so that one answer is enough while neither changes.
`python -m tests.write_safe_expressions` writes the file; a source that is not in it is checked by the tests.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parent / "safe.txt"
CHECKER: Final = tuple(Path(__file__).parent / "node" / name for name in ("main.mjs", "package-lock.json"))


@cache
def checker_digest() -> str:
    """Return the digest of the checker: its version and how it is asked."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in CHECKER)).hexdigest()


def digest(source: tuple[str, str]) -> str:
    """Return the digest of a source and its flags for this checker."""
    return hashlib.sha256(json.dumps([checker_digest(), *source]).encode()).hexdigest()[:32]


@cache
def safe_digests() -> frozenset[str]:
    """Return the digests of the file."""
    return frozenset(FILE.read_text().split())
