"""Judges of other packages, found by real entry points of an installed distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.plugins import install_plugin

JUDGE = """
from surgeval.qa import Vote, judge_kind

class Shortest:
    interactive = False
    def __init__(self, name, words): self.name, self.words = name, words
    def key(self, item): return None
    def vote(self, item):
        return Vote(self.name, "correct" if len(item.candidate.split()) <= self.words else "incorrect", requests=0)

@judge_kind("shortest[:WORDS]")
def shortest(setup): return Shortest(setup.name, int(setup.argument or 1))
"""


def test_a_judge_of_another_package_is_opened_by_its_name(tmp_path: Path) -> None:
    install_plugin(tmp_path, "surgeval.judges", {"shortest": "short:shortest"}, short=JUDGE)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from surgeval.qa import JudgeItem, Panel, open_judges\n"
        "panel = Panel(open_judges(['shortest', 'shortest:2']), tie='incorrect', short_circuit=False)\n"
        "for answer in ('clip', 'a clip', 'one more clip'):\n"
        "    verdict = panel.judge(JudgeItem('q', 'Which?', 'clip', answer))\n"
        "    print([vote.judge for vote in verdict.votes], verdict.state)\n"
        "open_judges(['shortst'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "['shortest', 'shortest:2'] correct",
        "['shortest', 'shortest:2'] incorrect",
        "['shortest', 'shortest:2'] incorrect",
    ], done.stderr
    assert "shortest[:WORDS]; did you mean 'shortest'?" in done.stderr
