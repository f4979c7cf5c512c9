"""The command line: parse, call, print. Nothing is computed here.

Exit codes: 0 ok, 1 some cases failed, 2 bad input, 130 interrupted. Every failure a user can cause is one sentence on
standard error; a traceback is a defect of surgeval.
"""

import atexit
import gc
import os
import signal
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
    # Processes that Ctrl-C ends leave semaphores behind. The tracker removes them, and need not tell.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the first to be registered is the last to be called
    try:
        from surgeval.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write(f"surgeval: {INTERRUPTED}\n")
        code = 130
    # All is said: another Ctrl-C while threads and libraries end has nothing to interrupt, and nothing to wait for.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(code))
    gc.freeze()  # else the interpreter looks for garbage for two seconds before it ends
    sys.exit(code)
