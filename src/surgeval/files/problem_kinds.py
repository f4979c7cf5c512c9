"""The kinds of problems in files from outside: the `kind` of a `Problem`, the `code` of a `DataError`.

`surgeval data check` counts problems by kind, and `--allow KIND` accepts those of one kind.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PROBLEM_KINDS"]

PROBLEM_KINDS: Final[dict[str, str]] = {
    # files
    "file-broken": "a file that is cut off or damaged, or is not in the format that its name promises",
    "file-missing": "a file that does not exist, or labels without any file",
    "file-not-regular": "a named pipe or a device in place of a file",
    "file-odd-name": "a copy, such as `000542 (1).jpg`, or a file that belongs to no video",
    "file-too-large": "a file above the size limit",
    "file-unreadable": "a file or folder that cannot be opened or listed, or whose name is not UTF-8",
    "format-version": "a file of another version of its format",
    "name-unsafe": "a video or split whose name leaves its folder or is not a file name on every disk",
    "path-escape": "a path or link that leads out of the dataset's folder",
    "split-leak": "a video in two splits",
    "empty": "a dataset without frames and questions",
    # values
    "wrong-shape": "a list, an object or a row of another length or type than the format has",
    "wrong-value": "a value that is not among the allowed ones",
    "not-a-number": "text or nothing in place of a number",
    "not-finite": "NaN or infinity",
    "not-text": "a number or nothing in place of text, or text that is not valid Unicode",
    "key-duplicate": "a key that an object has twice, or a class that is numbered twice",
    "key-missing": "a value, column or score that is missing",
    "key-unknown": "a key or column that has no meaning and is ignored",
    "column-duplicate": "a column that a table has twice",
    "id-duplicate": "two records or videos with the same id",
    "id-type": "an id of another type than the format has",
    # boxes and masks
    "box-degenerate": "a box without area",
    "box-off-frame": "a box outside its frame",
    "box-outside": "a box that reaches beyond its frame",
    "box-tiny": "boxes with a side below 4 pixels or 0.5 % of the frame, counted per video",
    "box-unit": "boxes that are fractions where pixels are expected, or pixels where fractions are expected",
    "box-unmatched": "a box of another dataset that belongs to no instrument of this one",
    "boxes-shifted": "boxes of another dataset that fit better to a neighbouring frame",
    "frame-unboxed": "an instrument, frame or video for which the other dataset has no box",
    "mask-broken": "a mask or outline whose points, counts or size do not fit",
    "shape-ignored": "a shape that is neither box nor outline",
    # labels
    "class-names": "class names that do not number the classes from 0, each once",
    "class-unknown": "a label that is not in the label space",
    "labels-differ": "labels of two sources, or of two records of one case, that contradict each other",
    "triplet-inconsistent": "a triplet class whose components contradict it",
    "triplet-unknown": "a combination that is not a class of the label space",
    # frames and media
    "frame-ambiguous": "a name that could be several frames",
    "frame-duplicate": "a frame that is described twice",
    "frame-name": "a frame or video without a usable name",
    "frame-unknown": "a record of a frame, image or video that does not exist",
    "frame-unlabelled": "an image or video without label",
    "image-broken": "an image that cannot be decoded or is too large",
    "image-missing": "an image that does not exist",
    "image-size": "an image or frame of another size than its label says, or of too many pixels",
    "images-absent": "a dataset without images",
    "media-missing": "an image or video of a question that does not exist",
    "size-assumed": "boxes in pixels of frames whose size is assumed",
    "size-missing": "boxes in pixels of frames whose size is unknown",
    "video-broken": "a video that cannot be decoded",
    "video-unlisted": "a video that the manifest does not list",
    # questions and predictions
    "capability-group": "a capability that does not belong to the question's group",
    "gaze-range": "gaze outside the frame or the time of a question",
    "reference-missing": "a question without reference, or a reference without question",
    "scores-equal": "predictions that all have the same score",
    "scores-missing": "predictions without scores, which all get the score 1",
    "time-order": "an interval that ends before it begins",
}
