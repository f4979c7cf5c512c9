"""One model at the frames of a video: prompts and questions, maps, occlusion, checks; a unit of a run."""
