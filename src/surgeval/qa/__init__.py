"""Is an answer right? Answer formats, judges, screening for attacks on judges, and what a chat model is.

Names load on first use: reading choices, for one, needs no table library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.qa.chat import Chat, ChatError, Price, Usage
    from surgeval.qa.formats import AnswerFormat, AnswerVerdict, check_reference, judge_format
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
    from surgeval.qa.screening import FlagPolicy, Screening, measure_screening, sample_suite, screen

__all__ = [
    "AnswerFormat",
    "AnswerVerdict",
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
    "VerdictCache",
    "Vote",
    "check_reference",
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

_HOMES = {
    "chat": "Chat ChatError Price Usage",
    "formats": "AnswerFormat AnswerVerdict check_reference judge_format",
    "judging": "ChatJudge Judge JudgeItem ManualJudge Panel PanelVerdict TableJudge "
    "VerdictCache Vote open_judges parse_verdict read_verdicts summarise_verdicts vote_table",
    "screening": "FlagPolicy Screening measure_screening sample_suite screen",
}  # fmt: skip
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
