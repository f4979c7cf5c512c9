"""Protocol `intent`: multiple-choice questions about what the clinician does and why, traps among them."""

from __future__ import annotations

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it understand what the surgeon is doing and why, and can it be talked into seeing what is not there?",
    order=25,
)

__all__ = ["DESCRIPTOR"]
