"""What an ingestion needs from outside."""

from typing import Protocol


class Progress(Protocol):
    """Is told how far a run is; may be called from several threads."""

    def begin(self, title: str, total: int) -> None:
        """Start a stage of `total` units, bytes or files, which ends the one before."""

    def advance(self, amount: int) -> None:
        """Add to what is done of the stage."""
