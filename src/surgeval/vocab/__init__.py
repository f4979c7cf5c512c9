"""Label spaces, splits, synonyms, prompts and the FOCUS taxonomy: packaged data files and how they are read.

`load_labels(name)` opens a packaged label space (cholect50, prostatd, cholec80, phantom) or a file such as
`my_labels.json`.
"""

from surgeval.vocab.focus_taxonomy import (
    Capability,
    ForeignObject,
    capabilities,
    foreign_objects,
    suggest_capabilities,
    track_limits,
)
from surgeval.vocab.label_space import LabelSpace, label_space_names, load_labels
from surgeval.vocab.prompts import (
    TripletPrompts,
    format_class_name,
    instrument_prompts,
    tools_question,
    triplet_prompts,
    triplets_question,
    verb_prompt,
)
from surgeval.vocab.splits import Split, fold_names, folds, source_of
from surgeval.vocab.synonyms import other_instruments, spellings

__all__ = [
    "Capability",
    "ForeignObject",
    "LabelSpace",
    "Split",
    "TripletPrompts",
    "capabilities",
    "fold_names",
    "folds",
    "foreign_objects",
    "format_class_name",
    "instrument_prompts",
    "label_space_names",
    "load_labels",
    "other_instruments",
    "source_of",
    "spellings",
    "suggest_capabilities",
    "tools_question",
    "track_limits",
    "triplet_prompts",
    "triplets_question",
    "verb_prompt",
]
