"""Make docs/images/motion-pipeline.png: `python docs/images/make_motion.py`."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from surgeval.explain.camera import camera_field
from surgeval.explain.motion import find_motion
from surgeval.figures import FlowPipeline
from surgeval.phantom import Footage, make_procedure

SEED, LOOK = 104, "C"


def main() -> None:
    """The frame of a phantom operation whose camera moves most, among one in every ten."""
    procedure = make_procedure(SEED)
    poses = {k: (procedure.state(k / 25).camera, procedure.state((k + 1) / 25).camera) for k in range(25, 1475, 10)}
    index = max(poses, key=lambda k: abs(poses[k][1].x - poses[k][0].x) + abs(poses[k][1].y - poses[k][0].y))
    footage = Footage(procedure, LOOK)
    a, b = footage.shoot(index).image, footage.shoot(index + 1, like=index).image
    motion = find_motion(a, b)
    field = camera_field(motion.camera, *a.shape[:2])
    panels = FlowPipeline(
        "What moves besides the camera", a, motion.flow.forward, field, motion.corrected, motion.moving.mask
    )
    Image.fromarray(panels.draw()).save(Path(__file__).with_name("motion-pipeline.png"), optimize=True)


if __name__ == "__main__":
    main()
