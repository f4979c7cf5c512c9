"""An item put to a model: conditions, pictures with the gaze, the prompt, the reply and the run of all of them."""
