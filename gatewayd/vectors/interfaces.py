"""Interface of an inference model: it turns a text into a row of numbers.

A mapping describes a model: `engine` (`models.catalogue.ModelEngine`), `task` (embed, rerank), `name` (one
that fastembed knows, or any with a path), `path` (a folder, or None for a download into the folder `cache`)
and `pooling` (mean, cls, none).
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]
Header = Mapping[str, Any]


class InferenceModel(Protocol):
    """Computes a row of `width` numbers for a text of a request. Thread-safe."""

    @property
    def width(self) -> int:
        """Return the number of values per text."""
        ...

    def compute(self, text: str, request: Header) -> Row:
        """Return the row of a text; `request` holds the other fields of the request."""
        ...


def normalise_row(found: NDArray[Any]) -> Row:
    """Return a vector scaled to length 1; a zero vector becomes NaNs, which the worker refuses."""
    row: Row = np.array(found, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        row /= np.linalg.norm(row)
    return row
