"""The command line: parse, call, print. Nothing is computed here.

Exit codes: 0 ok, 1 some cases failed, 2 bad input, 130 interrupted. Every failure a user can cause is one sentence on
standard error; a traceback is a defect of surgeval.
"""

from surgeval.cli._main import main

__all__ = ["main"]
