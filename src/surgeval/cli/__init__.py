"""The command line: parse, call, print. Nothing is computed here.

Exit codes: 0 ok, 1 some cases failed, 2 bad input, 130 interrupted. Every failure a user can cause is one sentence on
standard error; a traceback is a defect of surgeval.
"""

import gc
import sys

__all__ = ["main"]

INTERRUPTED = "interrupted; the same command again does what is left"


def main() -> None:
    """Entry point of the installed command; imports happen inside, so that Ctrl-C is answered from the start.

    >>> import subprocess
    >>> subprocess.run([sys.executable, "-m", "surgeval", "--version"], capture_output=True).returncode
    0
    """
    gc.set_threshold(20_000, 10, 10)  # importing torch makes many objects and no garbage: a fifth of its time
    try:
        from surgeval.cli._main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write(f"surgeval: {INTERRUPTED}\n")
        code = 130
    gc.freeze()  # else the interpreter looks for garbage for two seconds before it ends
    sys.exit(code)
