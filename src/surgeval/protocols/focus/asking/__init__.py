"""A question put to a model: the prompt, and the run of all of them."""
