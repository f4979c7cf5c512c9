"""How weights that strangers made are put into a network: for packages above that have networks of their own.

Nothing in them is run, no code is fetched, and a network takes no memory before names and shapes of its weights fit.
"""

from surgeval.models.io.checkpoint import read_torch
from surgeval.models.io.weights import WeightsMismatch, build, digest, read_config, read_safetensors

__all__ = ["WeightsMismatch", "build", "digest", "read_config", "read_safetensors", "read_torch"]
