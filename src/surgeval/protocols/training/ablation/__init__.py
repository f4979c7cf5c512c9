"""Ablations: what the parts of TDnet add, over configurations and seeds."""
