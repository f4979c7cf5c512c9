"""Is an answer right? Answer formats, judges, screening for attacks on judges, and what a chat model is."""

from surgeval.qa.chat import Chat, ChatError, Price, Usage
from surgeval.qa.formats import AnswerFormat, Verdict, check_reference, judge_format
from surgeval.qa.judging import (
    ChatJudge,
    Judge,
    JudgeItem,
    ManualJudge,
    Panel,
    PanelVerdict,
    TableJudge,
    VerdictCache,
    Vote,
    open_judges,
    parse_verdict,
    read_verdicts,
    summarise_verdicts,
    vote_table,
)
from surgeval.qa.screening import FlagPolicy, Screening, disqualifies, measure_screening, sample_suite, screen

__all__ = [
    "AnswerFormat",
    "Chat",
    "ChatError",
    "ChatJudge",
    "FlagPolicy",
    "Judge",
    "JudgeItem",
    "ManualJudge",
    "Panel",
    "PanelVerdict",
    "Price",
    "Screening",
    "TableJudge",
    "Usage",
    "Verdict",
    "VerdictCache",
    "Vote",
    "check_reference",
    "disqualifies",
    "judge_format",
    "measure_screening",
    "open_judges",
    "parse_verdict",
    "read_verdicts",
    "sample_suite",
    "screen",
    "summarise_verdicts",
    "vote_table",
]
