"""Label spaces, splits and taxonomies as packaged data, and the user's own from one JSON file.

`load_labels(name)` opens a packaged one (cholect50, prostatd, cholec80, phantom) or `my_labels.json`.
A label space names instruments, verbs and targets and says which combinations are classes; ids are positions.
"""

from surgeval.vocab.focus import (
    Capability,
    ForeignObject,
    capabilities,
    capability_expected,
    foreign_objects,
    track_limits,
)
from surgeval.vocab.space import LabelSpace, from_json, label_space_names, load_labels
from surgeval.vocab.splits import Split, fold_names, folds, source_of
from surgeval.vocab.spoken import tools_question, triplets_question
from surgeval.vocab.synonyms import other_instruments, spellings

__all__ = [
    "Capability",
    "ForeignObject",
    "LabelSpace",
    "Split",
    "capabilities",
    "capability_expected",
    "fold_names",
    "folds",
    "foreign_objects",
    "from_json",
    "label_space_names",
    "load_labels",
    "other_instruments",
    "source_of",
    "spellings",
    "tools_question",
    "track_limits",
    "triplets_question",
]
