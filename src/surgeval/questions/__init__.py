"""Making questions: source records, prompt templates, generation, automatic checks, probes, review and export.

`make_questions` asks a chat model and keeps what passes every check, `Review` is the desk at which people judge a set
without seeing one another, `export_set` writes what they accepted. Neither knows a terminal.
"""

from surgeval.questions._folder import QuestionSet, open_set
from surgeval.questions.draft import Draft, UnreadableReply, read_drafts, reply_schema
from surgeval.questions.make import Made, Making, Refusal, make_questions
from surgeval.questions.records import Scene, SourceRecord, read_records, write_records
from surgeval.questions.template import (
    Rules,
    Skill,
    Template,
    assemble,
    fitting_templates,
    repair_text,
    skills,
    templates,
)

__all__ = [
    "Draft",
    "Made",
    "Making",
    "QuestionSet",
    "Refusal",
    "Rules",
    "Scene",
    "Skill",
    "SourceRecord",
    "Template",
    "UnreadableReply",
    "assemble",
    "fitting_templates",
    "make_questions",
    "open_set",
    "read_drafts",
    "read_records",
    "repair_text",
    "reply_schema",
    "skills",
    "templates",
    "write_records",
]
