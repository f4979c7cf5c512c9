"""Make questions: source records, prompt templates, generation, automatic checks, probes, review and export.

`generate_questions` asks a chat model and keeps the questions that pass every check. At a `ReviewDesk` a person judges
the questions of a set without seeing other judgements, and `export_set` writes what the reviewers accepted.
"""

from surgeval.questions.checks import (
    Fault,
    QuestionCheck,
    check_claims,
    check_question,
    question_check,
)
from surgeval.questions.clips import ClipOptions, dataset_clips, table_clips
from surgeval.questions.drafts import Draft, Facts, UnreadableReply, read_drafts, reply_schema
from surgeval.questions.export import ExportResult, export_set, skills_by_scenario
from surgeval.questions.generate import GenerationResult, GenerationSettings, Refusal, generate_questions
from surgeval.questions.image_cases import (
    ImageRegion,
    dwell_by_region,
    image_records,
    off_frame_sentence,
    regions_while_naming,
)
from surgeval.questions.probe import ProbeResult, ProbeRow, gaze_confirmed, guessable, probe_items, read_probe
from surgeval.questions.prompt_templates import (
    Rules,
    Skill,
    Template,
    assemble_prompt,
    describe_gaze,
    fitting_templates,
    open_template,
    repair_text,
    skills,
    templates,
)
from surgeval.questions.question_set import QuestionSet, item_fingerprint, open_set
from surgeval.questions.review import Adjudication, ItemDecision, Judgement, ReviewDesk, decide, read_judgements
from surgeval.questions.reviewer_agreement import AgreementRow, agreement, agreement_frame
from surgeval.questions.set_checks import LongestBias, SetReport, check_batch, check_set, inspect_set, longest_bias
from surgeval.questions.source_records import Scene, SourceRecord, read_source_records, write_source_records

__all__ = [
    "Adjudication",
    "AgreementRow",
    "ClipOptions",
    "Draft",
    "ExportResult",
    "Facts",
    "Fault",
    "GenerationResult",
    "GenerationSettings",
    "ImageRegion",
    "ItemDecision",
    "Judgement",
    "LongestBias",
    "ProbeResult",
    "ProbeRow",
    "QuestionCheck",
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
    "agreement_frame",
    "assemble_prompt",
    "check_batch",
    "check_claims",
    "check_question",
    "check_set",
    "dataset_clips",
    "decide",
    "describe_gaze",
    "dwell_by_region",
    "export_set",
    "fitting_templates",
    "gaze_confirmed",
    "generate_questions",
    "guessable",
    "image_records",
    "inspect_set",
    "item_fingerprint",
    "longest_bias",
    "off_frame_sentence",
    "open_set",
    "open_template",
    "probe_items",
    "question_check",
    "read_drafts",
    "read_judgements",
    "read_probe",
    "read_source_records",
    "regions_while_naming",
    "repair_text",
    "reply_schema",
    "skills",
    "skills_by_scenario",
    "table_clips",
    "templates",
    "write_source_records",
]
