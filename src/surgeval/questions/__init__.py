"""Making questions: source records, prompt templates, generation, automatic checks, probes, review and export.

`make_questions` asks a chat model and keeps what passes every check, `ReviewDesk` is the desk at which people judge a
set without seeing one another, `export_set` writes what they accepted. Neither knows a terminal.
"""

from surgeval.questions.clips import ClipOptions, dataset_clips, table_clips
from surgeval.questions.draft import Draft, UnreadableReply, read_drafts, reply_schema
from surgeval.questions.export import Exported, export_set, skills_by_scenario
from surgeval.questions.folder import QuestionSet, open_set
from surgeval.questions.gaze_words import gaze_in_words
from surgeval.questions.images import ImageRegion, dwell_by_region, image_records, regions_while_naming
from surgeval.questions.inspect import SetReport, inspect_set
from surgeval.questions.judgements import Judgement, item_fingerprint, read_judgements
from surgeval.questions.kappas import AgreementRow, agreement
from surgeval.questions.make import Made, Making, Refusal, make_questions
from surgeval.questions.probe import Probed, ProbeRow, gaze_confirmed, guessable, probe_items, read_probe
from surgeval.questions.records import Scene, SourceRecord, read_records, write_records
from surgeval.questions.review import Adjudication, ItemDecision, ReviewDesk, decide
from surgeval.questions.template import (
    Rules,
    Skill,
    Template,
    assemble,
    fitting_templates,
    open_template,
    repair_text,
    skills,
    templates,
)

__all__ = [
    "Adjudication",
    "AgreementRow",
    "ClipOptions",
    "Draft",
    "Exported",
    "ImageRegion",
    "ItemDecision",
    "Judgement",
    "Made",
    "Making",
    "ProbeRow",
    "Probed",
    "QuestionSet",
    "Refusal",
    "ReviewDesk",
    "Rules",
    "Scene",
    "SetReport",
    "Skill",
    "SourceRecord",
    "Template",
    "UnreadableReply",
    "agreement",
    "assemble",
    "dataset_clips",
    "decide",
    "dwell_by_region",
    "export_set",
    "fitting_templates",
    "gaze_confirmed",
    "gaze_in_words",
    "guessable",
    "image_records",
    "inspect_set",
    "item_fingerprint",
    "make_questions",
    "open_set",
    "open_template",
    "probe_items",
    "read_drafts",
    "read_judgements",
    "read_probe",
    "read_records",
    "regions_while_naming",
    "repair_text",
    "reply_schema",
    "skills",
    "skills_by_scenario",
    "table_clips",
    "templates",
    "write_records",
]
