"""Model files of strangers: checkpoints, weights and settings, read without running them; the hub they come from."""
