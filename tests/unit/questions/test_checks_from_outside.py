"""Checks of other packages, found by real entry points of an installed distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.plugins import install_plugin

CHECK = '''
from surgeval.questions import question_check

@question_check()
def ends_with_mark(draft, rules, facts):
    """The question ends with a question mark."""
    return "" if draft.question.endswith("?") else "no question mark"
'''


def test_a_check_of_another_package_is_applied_and_listed(tmp_path: Path) -> None:
    install_plugin(tmp_path, "surgeval.question_checks", {"ends-with-mark": "marks:ends_with_mark"}, marks=CHECK)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from surgeval.questions import Draft, Rules, check_claims, check_question\n"
        "draft = Draft('relative', 'What do I see', ('hook', 'clip'), (0,))\n"
        "print(*check_question(draft, Rules()))\n"
        "print(check_claims()['ends-with-mark'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "ends-with-mark: no question mark",
        "The question ends with a question mark.",
    ], done.stderr
