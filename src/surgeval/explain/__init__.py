"""Heatmaps, regions, flow, occlusion, causal graphs: where a model looks, and whether it should."""
