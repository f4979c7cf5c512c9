"""Can the frames be used? Rules from counts to sentences; docs/verdicts.md lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from surgeval.protocols.verdict import Claim, Reason, Rule, Verdict, verdict_of
from surgeval.results import percent

if TYPE_CHECKING:
    from surgeval.protocols.quality.result import QualityScores

__all__ = ["CLAIM", "RULES", "judge", "reasons_of"]

CLAIM = Claim("The frames can be used as they are.", "The frames cannot be used as they are.")
FEW, MANY, ONE_VIDEO = 0.05, 0.2, 0.5
RULES = {
    rule.name: rule
    for rule in (
        Rule("unusable", f"At most {percent(FEW)} of the frames are unreadable or proposed to drop; fails from "
             f"{percent(MANY)} on.", "decides"),
        Rule("worst video", f"In no video are {percent(ONE_VIDEO)} of the frames unusable.", "limits"),
    )
}  # fmt: skip


def judge(scores: QualityScores) -> Verdict | None:
    """The verdict on the frames of a dataset; None without frames."""
    videos: dict[str, list[bool]] = {}
    for video, dropped in scores.cases.select("video", "dropped").iter_rows():
        videos.setdefault(video, []).append(dropped)
    for video in scores.unreadable["video"].to_list():
        videos.setdefault(video, []).append(True)
    counts = {video: (sum(frames), len(frames)) for video, frames in videos.items()}
    return verdict_of(CLAIM, reasons_of(counts), len(counts)) if counts else None


def reasons_of(videos: Mapping[str, tuple[int, int]]) -> tuple[Reason, ...]:
    """From the unusable frames of each video and all of its frames.

    >>> [reason.holds for reason in reasons_of({"VID01": (0, 40), "VID02": (30, 40)})]
    [False, False]
    """
    lost, total = (sum(pair[k] for pair in videos.values()) for k in (0, 1))
    share = lost / total
    holds = True if share <= FEW else False if share >= MANY else None
    dropped = f"{lost} of {total} frames ({percent(share)}) are unreadable or proposed to drop"
    reasons = [Reason(RULES["unusable"], f"{dropped}.", holds, dropped)]
    worst = max(videos, key=lambda video: videos[video][0] / videos[video][1])
    bad, frames = videos[worst]
    if lost and len(videos) > 1:
        text = f"Worst video: {worst}, {bad} of {frames} frames ({percent(bad / frames)})."
        clause = f"of {worst} {percent(bad / frames)} are unusable"
        reasons.append(Reason(RULES["worst video"], text, bad < ONE_VIDEO * frames, clause))
    return tuple(reasons)
