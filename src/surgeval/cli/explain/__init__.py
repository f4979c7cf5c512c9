"""`surgeval explain`: its options, heatmaps, and causal graphs."""
