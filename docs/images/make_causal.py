"""Make docs/images/causal-*: `python docs/images/make_causal.py`.

The embedded `phantom-llava` is asked what it sees in two frames of the phantom that it was not trained on; the causal
graphs behind its answers are drawn over the frame, with the boxes of the script as the relevant area.
"""

from __future__ import annotations
