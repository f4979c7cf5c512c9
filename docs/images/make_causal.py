"""Make docs/images/causal-*: `python docs/images/make_causal.py PHANTOM`.

PHANTOM is the folder of `surgeval data phantom --edition phantom-v1`. The embedded `phantom-llava` is asked the papers'
two questions about frames of test videos, which it was not trained on; the causal graphs behind its answers are drawn
over the frame, with the boxes of the script as the relevant area.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from PIL import Image

from surgeval.datasets import open_dataset, read_image
from surgeval.protocols.surgxbench import explain_causes
from surgeval.records import ImageRef
from surgeval.vocab import tools_question, triplets_question

HERE = Path(__file__).parent
PICTURES = {  # video, frame, question, tokens of the answer
    "causal-right.jpg": ("C6", "000700", tools_question, 64),
    "causal-wrong.jpg": ("B3", "000200", tools_question, 64),
    "causal-triplet.jpg": ("C2", "000700", triplets_question, 3),
}


def main(phantom: Path) -> None:
    """One picture per question."""
    dataset = open_dataset(phantom)
    for name, (video, wanted, question, most) in PICTURES.items():
        frame = next(frame for frame in dataset.frames(video) if frame.name == wanted)
        boxes = [instance.box.corners for instance in frame.instances if instance.box is not None]
        asked, image = question(dataset.space), read_image(cast("ImageRef", frame.image))
        shown = explain_causes(image, "phantom-llava", asked, boxes=boxes, max_tokens=most)
        picture = Image.fromarray(shown.picture)
        small = picture.resize((1200, round(picture.height * 1200 / picture.width)), Image.Resampling.LANCZOS)
        small.save(HERE / name, quality=82, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
