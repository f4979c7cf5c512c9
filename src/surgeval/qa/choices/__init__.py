"""Multiple choice: how the options are shown, and which one a reply in free words chooses.

`read_choice(reply, options)` never raises because of what a model wrote; a reply without one clear choice gets a
reading that says why (empty, refused, ambiguous, out_of_range, unreadable).
"""

from surgeval.qa.choices.prompt import choice_prompt, letters
from surgeval.qa.choices.read import Choice, Reading, read_choice

__all__ = ["Choice", "Reading", "choice_prompt", "letters", "read_choice"]
