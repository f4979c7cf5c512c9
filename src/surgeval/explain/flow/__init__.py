"""Optical flow between two frames: DIS (the default), Farnebäck, RAFT, or files computed elsewhere."""

from surgeval.explain.flow.estimate import (
    FLOW_METHODS,
    DisFlow,
    FarnebackFlow,
    FlowMethod,
    FlowPair,
    StoredFlow,
    estimate_flow,
    open_flow,
)

__all__ = [
    "FLOW_METHODS",
    "DisFlow",
    "FarnebackFlow",
    "FlowMethod",
    "FlowPair",
    "StoredFlow",
    "estimate_flow",
    "open_flow",
]
