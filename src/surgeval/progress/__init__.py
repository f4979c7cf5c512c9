"""How far a long job is: named phases, counted things, their rate and the time that is left, on standard error.

A command opens one display; whatever it calls reports to that one, also from other processes, so nothing draws a
second bar. The phases' times are kept and told at the end.
"""

from surgeval.progress.display import Display, advance, forwarded, phases, quiet, restart_clock, start_phase, timed
from surgeval.progress.text import time_line

__all__ = ["Display", "advance", "forwarded", "phases", "quiet", "restart_clock", "start_phase", "time_line", "timed"]
