"""What a model's process runs: a text in, a row of numbers out.

A model is described by a mapping with `engine` (`models.Engine`), `task` (embed, rerank), `name` (one that
fastembed knows, or any with a path), `path` (a folder, or None: downloaded once into the folder `cache`) and
`pooling` (mean, cls, none).
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]
Header = Mapping[str, Any]


class InferenceModel(Protocol):
    """Computes a row of `width` numbers for a text of a request; from any thread."""

    @property
    def width(self) -> int:
        """Return how many numbers a text gets."""
        ...

    def compute(self, text: str, request: Header) -> Row:
        """Return the row of a text; `request` is the rest of what was asked."""
        ...


def normalise_row(found: NDArray[Any]) -> Row:
    """Return a vector as one of length 1; one of zeros becomes one of no numbers, which is refused."""
    row: Row = np.array(found, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        row /= np.linalg.norm(row)
    return row
