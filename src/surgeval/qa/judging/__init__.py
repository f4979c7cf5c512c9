"""Panels of judges for answers that no parser can score: language models, recorded verdicts, people.

`Panel.judge(item)` asks the judges in order until the outcome is decided. See docs/judges.md.
"""

from surgeval.qa.judging._cache import VerdictCache
from surgeval.qa.judging._kinds import ChatJudge, ExactJudge, Judge, TableJudge, read_verdicts
from surgeval.qa.judging._manual import ManualJudge
from surgeval.qa.judging._panel import COMPAT, Panel
from surgeval.qa.judging._prompt import JudgeItem, judge_messages
from surgeval.qa.judging._report import JudgeTally, PanelReport, summarise_verdicts, vote_table
from surgeval.qa.judging._spec import JudgeSpec, open_judges, parse_judge
from surgeval.qa.judging._verdict import parse_verdict
from surgeval.qa.judging._vote import Outcome, PanelVerdict, TiePolicy, Vote, VoteState, VotingRule

__all__ = [
    "COMPAT",
    "ChatJudge",
    "ExactJudge",
    "Judge",
    "JudgeItem",
    "JudgeSpec",
    "JudgeTally",
    "ManualJudge",
    "Outcome",
    "Panel",
    "PanelReport",
    "PanelVerdict",
    "TableJudge",
    "TiePolicy",
    "VerdictCache",
    "Vote",
    "VoteState",
    "VotingRule",
    "judge_messages",
    "open_judges",
    "parse_judge",
    "parse_verdict",
    "read_verdicts",
    "summarise_verdicts",
    "vote_table",
]
