"""How an instrument lies in its frame: the sector it comes from, its orientation, its key point.

An instrument enters through a trocar, so the side on which it leaves the picture tells two of a class apart better than
where its tip is. A box leaves on the side that is farthest from the centre: many endoscopes show a round field and many
boxes hold only the head, so boxes need not touch the image's border. An outline leaves along its long axis.
"""

from __future__ import annotations

import numpy as np

from surgeval.arrays import Floats, Ints

__all__ = ["box_axes", "box_exits", "nearest_corners", "outline_axes", "outline_exits", "sector_of"]

_DOUBT = 0.8  # a side that reaches out as far as this share of the farthest may be the one it comes in by


def sector_of(exits: Floats, centre: Floats, sectors: int = 8) -> Ints:
    """The sector of each exit point about the centre: 0 lies to the right, the next ones follow clockwise.

    Sectors lie about the axes, not between them: a shaft that comes straight from one side is in the middle of one.

    >>> sector_of(np.array([[99.0, 50.0], [50.0, 99.0], [0.0, 48.0]]), np.array([50.0, 50.0])).tolist()
    [0, 2, 4]
    """
    turn = np.arctan2(exits[:, 1] - centre[1], exits[:, 0] - centre[0]) * sectors / (2 * np.pi)
    return np.asarray(np.floor(turn + 0.5).astype(np.int64) % sectors, dtype=np.int64)


def box_exits(xyxy: Floats, size: tuple[float, float]) -> Floats:
    """Where each box may leave the picture: the middle of its farthest side, and of the next one if nearly as far.

    The second point repeats the first where there is no doubt. An instrument that reaches across the picture touches
    its border twice, and only its past tells on which side it came in.

    >>> box_exits(np.array([[0.0, 40, 30, 60], [0, 10, 90, 60]]), (100.0, 100.0)).tolist()
    [[[0.0, 50.0], [0.0, 50.0]], [[0.0, 35.0], [45.0, 10.0]]]
    """
    width, height = size
    x1, y1, x2, y2 = xyxy.T
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    middles = np.stack([np.stack(side, axis=1) for side in ((x1, y), (x, y1), (x2, y), (x, y2))], axis=1)
    reach = np.stack([width / 2 - x1, height / 2 - y1, x2 - width / 2, y2 - height / 2], axis=1)
    two = np.argsort(-reach, axis=1, kind="stable")[:, :2]
    far = np.take_along_axis(reach, two, axis=1)
    two[:, 1] = np.where(far[:, 1] >= _DOUBT * far[:, 0], two[:, 1], two[:, 0])
    return np.asarray(np.take_along_axis(middles, two[:, :, None], axis=1))


def _corners(xyxy: Floats) -> Floats:
    """The four corners of each box, one after the other around it."""
    return np.stack([xyxy[:, [0, 1]], xyxy[:, [2, 1]], xyxy[:, [2, 3]], xyxy[:, [0, 3]]], axis=1)


def _nearest(xyxy: Floats, centre: Floats) -> Ints:
    return np.asarray(((_corners(xyxy) - centre) ** 2).sum(axis=2).argmin(axis=1), dtype=np.int64)


def nearest_corners(xyxy: Floats, centre: Floats) -> Floats:
    """The corner of each box that is nearest to the centre: the tip, where nobody knows it.

    >>> nearest_corners(np.array([[0.0, 0.0, 30.0, 20.0]]), np.array([50.0, 50.0])).tolist()
    [[30.0, 20.0]]
    """
    return np.asarray(_corners(xyxy)[np.arange(len(xyxy)), _nearest(xyxy, centre)])


def box_axes(xyxy: Floats, centre: Floats) -> Floats:
    """The direction (radians, modulo π) of the diagonal from the corner nearest to the centre.

    >>> boxes = np.array([[0.0, 0.0, 30.0, 30.0], [0.0, 70.0, 30.0, 100.0]])
    >>> np.degrees(box_axes(boxes, np.array([50.0, 50.0]))).tolist()
    [45.0, 135.0]
    """
    corners, nearest, rows = _corners(xyxy), _nearest(xyxy, centre), np.arange(len(xyxy))
    along = corners[rows, nearest] - corners[rows, (nearest + 2) % 4]
    return np.asarray(np.arctan2(along[:, 1], along[:, 0]) % np.pi)


def outline_axes(outlines: list[Floats]) -> tuple[Floats, Floats]:
    """Centroid and direction (radians, modulo π) of the long axis of each polygon, from its area's second moments.

    >>> centres, axes = outline_axes([np.array([[0.0, 0.0], [40.0, 0.0], [40.0, 4.0], [0.0, 4.0]])])
    >>> centres.tolist(), axes.tolist()
    ([[20.0, 2.0]], [0.0])
    """
    counts = np.array([len(outline) for outline in outlines])
    points = np.concatenate(outlines)
    start = np.concatenate([[0], np.cumsum(counts)[:-1]])
    which = np.repeat(np.arange(len(outlines)), counts)
    middle = np.add.reduceat(points, start) / counts[:, None]
    x, y = (points - middle[which]).T
    following = np.arange(1, len(points) + 1)
    following[start + counts - 1] = start
    u, v = x[following], y[following]
    cross = x * v - u * y

    def total(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, start))

    area = total(cross) / 2
    flat = np.abs(area) <= 1e-9 * np.maximum(total(np.hypot(u - x, v - y)) ** 2, 1e-300)
    whole = np.where(flat, 1.0, area)
    cx, cy = total((x + u) * cross) / (6 * whole), total((y + v) * cross) / (6 * whole)
    xx = total((x * x + x * u + u * u) * cross) / (12 * whole) - cx * cx
    yy = total((y * y + y * v + v * v) * cross) / (12 * whole) - cy * cy
    xy = total((2 * x * y + x * v + u * y + 2 * u * v) * cross) / (24 * whole) - cx * cy
    # A polygon without area has no such moments: those of its corners serve.
    cx, cy = np.where(flat, 0.0, cx), np.where(flat, 0.0, cy)
    xx, yy = np.where(flat, total(x * x) / counts, xx), np.where(flat, total(y * y) / counts, yy)
    xy = np.where(flat, total(x * y) / counts, xy)
    axes = (np.arctan2(2 * xy, xx - yy) / 2) % np.pi
    return middle + np.stack([cx, cy], axis=1), np.asarray(axes)


def outline_exits(centroids: Floats, axes: Floats, size: tuple[float, float]) -> Floats:
    """Where the long axis of each outline leaves the picture, on the side on which the outline lies.

    >>> outline_exits(np.array([[20.0, 50.0]]), np.array([0.0]), (100.0, 100.0)).tolist()
    [[0.0, 50.0]]
    """
    frame = np.array(size, dtype=np.float64)
    along = np.stack([np.cos(axes), np.sin(axes)], axis=1)
    outward = ((centroids - frame / 2) * along).sum(axis=1)
    along = np.where((outward < 0)[:, None], -along, along)
    inside = np.clip(centroids, 0.0, frame)
    edge = np.where(along > 0, frame, 0.0)
    steps = np.divide(edge - inside, along, out=np.full_like(along, np.inf), where=np.abs(along) > 1e-12)
    exits: Floats = inside + along * steps.min(axis=1)[:, None]
    return exits
