"""The tasks that Inspect AI finds by the entry point: `inspect eval surgeval/focus` and `surgeval/intent`."""

from surgeval.protocols.focus.inspect_task import focus
from surgeval.protocols.intent.inspect_task import intent

__all__ = ["focus", "intent"]
