"""Free text → classes: which instruments and triplets of a label space a reply names, and where in it.

Synonyms come from `vocab`; what is denied ("I do not see a hook") is no mention, a class named twice is named once, and
what the label space does not hold is kept as `unparsed`.
"""

from surgeval.qa.mentions.instruments import instrument_mentions
from surgeval.qa.mentions.mentions import Mentions
from surgeval.qa.mentions.triplets import triplet_mentions

__all__ = ["Mentions", "instrument_mentions", "triplet_mentions"]
