"""Heatmaps, regions, optical flow, occlusion, sanity checks: where a model looks, and whether it should.

`heatmaps.heatmaps` makes the maps, `Paste` puts them on the frame, `top_regions` and `overlap` compare them with
labels, `occlusion` and `sanity` ask whether region and map mean anything. Names load on first use: most need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.explain._maps import Maps, Method, MethodRecord
    from surgeval.explain._paste import Paste, whole
    from surgeval.explain._select import count
    from surgeval.explain.baselines import BASELINES, baseline
    from surgeval.explain.camera import camera_field, corrected_flow, fit_camera, fit_camera_robust
    from surgeval.explain.cross import cross_attention, word_rows
    from surgeval.explain.flow import FlowPair, open_flow
    from surgeval.explain.gradcam import cam
    from surgeval.explain.heatmaps import method_for
    from surgeval.explain.motion import Motion, MotionMask, MotionSettings, find_motion, motion_mask
    from surgeval.explain.occlusion import Occlusion, OcclusionCurves, curves, fill_colour, occlude
    from surgeval.explain.regions import Regions, box_masks, overlap, top_regions
    from surgeval.explain.rollout import rollout_rows
    from surgeval.explain.sanity import Cascade, map_correlation, prompt_randomisation, weight_randomisation
    from surgeval.explain.token_gradcam import TokenMaps, joined_map, token_maps

# A function named as its module (heatmaps, rollout, gradcam, occlusion) is not here: the module would shadow it.
_HOMES = {
    "_maps": "Maps Method MethodRecord",
    "_paste": "Paste whole",
    "_select": "count",
    "baselines": "BASELINES baseline",
    "camera": "camera_field corrected_flow fit_camera fit_camera_robust",
    "cross": "cross_attention word_rows",
    "flow": "FlowPair open_flow",
    "gradcam": "cam",
    "heatmaps": "method_for",
    "motion": "Motion MotionMask MotionSettings find_motion motion_mask",
    "occlusion": "OcclusionCurves Occlusion curves fill_colour occlude",
    "regions": "Regions box_masks overlap top_regions",
    "rollout": "rollout_rows",
    "sanity": "Cascade map_correlation prompt_randomisation weight_randomisation",
    "token_gradcam": "TokenMaps joined_map token_maps",
}

__all__ = [
    "BASELINES",
    "Cascade",
    "FlowPair",
    "Maps",
    "Method",
    "MethodRecord",
    "Motion",
    "MotionMask",
    "MotionSettings",
    "Occlusion",
    "OcclusionCurves",
    "Paste",
    "Regions",
    "TokenMaps",
    "baseline",
    "box_masks",
    "cam",
    "camera_field",
    "corrected_flow",
    "count",
    "cross_attention",
    "curves",
    "fill_colour",
    "find_motion",
    "fit_camera",
    "fit_camera_robust",
    "joined_map",
    "map_correlation",
    "method_for",
    "motion_mask",
    "occlude",
    "open_flow",
    "overlap",
    "prompt_randomisation",
    "rollout_rows",
    "token_maps",
    "top_regions",
    "weight_randomisation",
    "whole",
    "word_rows",
]


__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
