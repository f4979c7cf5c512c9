"""What a handler reports of its work."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Effect"]


@dataclass(frozen=True, slots=True)
class Effect:
    """Rows changed; instances skipped; frames without the instance; ids or numbers that were made."""

    changed: int = 0
    skipped: int = 0
    absent: int = 0
    created: tuple[str, ...] = ()
