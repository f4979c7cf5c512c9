"""Names and values that mean something in CVAT's files, or in those that are written here."""

from __future__ import annotations

UNDEFINED = "__undefined__"  # CVAT's own word for a value that nobody chose
ACTION, TARGET = "Action", "Target"
TRACK = "track"  # our track id: CVAT numbers its tracks anew
SCORE = "score"
PART = "part"  # of an instance whose outline has several
_COMPONENTS = {"action": "verb", "verb": "verb", "target": "target"}


def component_of(attribute: str) -> str:
    """The part of a triplet that an attribute names, '' for none.

    >>> component_of("Action"), component_of("target"), component_of("position")
    ('verb', 'target', '')
    """
    return _COMPONENTS.get(attribute.casefold(), "")
