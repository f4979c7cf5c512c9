"""Panels of judges for answers that no parser can score: language models, recorded verdicts, people.

`Panel.judge(item)` asks the judges in order until the outcome is decided. See docs/judges.md.
"""

from surgeval.qa.judging.cache import VerdictCache
from surgeval.qa.judging.kinds import ChatJudge, ExactJudge, Judge, TableJudge, read_verdicts
from surgeval.qa.judging.manual import ManualJudge
from surgeval.qa.judging.panel import COMPAT, Panel
from surgeval.qa.judging.prompt import JudgeItem, judge_messages
from surgeval.qa.judging.report import JudgeTally, PanelReport, summarise_verdicts, vote_table
from surgeval.qa.judging.spec import JudgeSpec, open_judges, parse_judge
from surgeval.qa.judging.verdict import parse_verdict
from surgeval.qa.judging.vote import Outcome, PanelVerdict, TiePolicy, Vote, VoteState, VotingRule

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
