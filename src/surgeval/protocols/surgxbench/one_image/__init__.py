"""One image and a few prompts or a question, without a run: maps or causal graphs, as a picture."""
