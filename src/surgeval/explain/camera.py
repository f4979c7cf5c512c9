"""Camera motion from optical flow: pan P, tilt T, zoom Z, roll R of the view between two frames.

The model is u = −P − Zx + Ry, v = −T − Zy − Rx, in pixels about the middle ((W−1)/2, (H−1)/2) of the frame, x right
and y down. "Pan +1" moves the image's content one pixel to the left. A moving instrument biases the plain fit: exclude
its pixels (`where`) or fit robustly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import AnyArray, AnyFloats, Bools, Floats
from surgeval.errors import BadInput
from surgeval.records import CameraMotion

__all__ = ["RobustFit", "camera_field", "corrected_flow", "edge_motion", "fit_camera", "fit_camera_robust"]


_RAYLEIGH = math.sqrt(2 * math.log(2))  # median length of a 2-D Gaussian vector with σ = 1
_SMALLEST = 1e-4  # px: residuals below are rounding, not noise
_LATTICE = 4096  # pixels of a robust fit: neighbours in a flow field repeat each other
_SETTLED = {"huber": 1e-2, "tukey": 1e-6}  # px at the corner: a step this small ends the iteration


def fit_camera(forward: AnyFloats, backward: AnyFloats | None = None, *, where: Bools | None = None) -> CameraMotion:
    """The least-squares camera motion of a flow field (H, W, 2), on all pixels or on those of `where`.

    With `backward` (the flow from the second frame to the first) the sum |c − f|² + |c + b|² is minimised, which is
    the fit to (f − b)/2.

    >>> pan = np.zeros((4, 6, 2)); pan[..., 0] = -2.0
    >>> fit_camera(pan).P
    2.0
    """
    flow, used = _prepare(forward, backward, where)
    y, x = _axes(*flow.shape[:2])
    return _solve(flow, x, y, used)


@dataclass(frozen=True, slots=True)
class RobustFit:
    """The result of a robust fit; `scale` is the estimated noise (σ per component, px)."""

    motion: CameraMotion
    scale: float
    share: float  # share of the pixels with any weight
    steps: int
    converged: bool


def fit_camera_robust(
    forward: AnyFloats, backward: AnyFloats | None = None, *, where: Bools | None = None, tuning: float = 3.0,
    steps: int = 100,
) -> RobustFit:  # fmt: skip
    """The camera motion of the larger part of the image; pixels that move differently get no weight.

    Iteratively reweighted least squares: first with Huber's weights, whose solution does not depend on the start, then
    with Tukey's, which are zero beyond `tuning` times the noise. The noise is the median residual, so the fit is valid
    if clearly more than half of the pixels follow the camera.

    >>> flow = np.zeros((8, 10, 2)); flow[..., 0] = -2.0; flow[2:4, 3:6] = [9.0, 5.0]  # an instrument in a panning view
    >>> round(fit_camera(flow).P, 2), round(fit_camera_robust(flow).motion.P, 2)
    (1.18, 2.0)
    """
    if not (math.isfinite(tuning) and tuning > 0) or steps < 1:
        raise BadInput(f"tuning must be a positive number and steps at least 1, not {tuning} and {steps}.")
    flow, used = _prepare(forward, backward, where)
    y, x = _axes(*flow.shape[:2])
    flow, used, x, y = _thin_out(flow, used, x, y)
    height, width = np.shape(forward)[:2]
    inside = np.ones(flow.shape[:2], bool) if used is None else used
    motion = _solve(flow, x, y, used)
    done, converged = 0, False
    residual = _residual(flow, motion, x, y)
    scale = _scale(residual[inside])
    weights = inside.astype(np.float64)
    for kind, settled in _SETTLED.items():
        converged = False
        for _ in range(steps):
            weights = inside * (
                _huber(residual, 1.345 * scale) if kind == "huber" else _tukey(residual, tuning * scale)
            )
            before, motion = motion, _solve(flow, x, y, weights)
            residual = _residual(flow, motion, x, y)
            scale = _scale(residual[inside])
            done += 1
            if edge_motion(_difference(motion, before), height, width) < settled:
                converged = True
                break
    share = float((weights > 0).sum() / inside.sum())
    return RobustFit(motion, scale, share, done, converged)


def camera_field(motion: CameraMotion, height: int, width: int) -> Floats:
    """The flow (H, W, 2) caused by this camera motion alone.

    >>> camera_field(CameraMotion(P=1.0, T=0.0, Z=0.0, R=0.0), 1, 2)[..., 0].tolist()
    [[-1.0, -1.0]]
    """
    y, x = _axes(height, width)
    field = np.empty((height, width, 2))
    field[..., 0] = -motion.P - motion.Z * x + (motion.R * y)[:, None]
    field[..., 1] = -motion.T - (motion.Z * y)[:, None] - motion.R * x
    return field


def corrected_flow(forward: AnyFloats, motion: CameraMotion) -> AnyFloats:
    """The flow minus the camera's field: the motion relative to the scene.

    >>> flow = np.zeros((4, 6, 2)); flow[..., 0] = -2.0; flow[1, 2] = [3.0, 1.0]
    >>> pan = fit_camera(flow, where=flow[..., 0] < 0)
    >>> corrected_flow(flow, pan)[1, 2].round(6).tolist(), corrected_flow(flow, pan)[0, 0].round(6).tolist()
    ([5.0, 1.0], [0.0, 0.0])
    """
    corrected: AnyFloats = (forward - camera_field(motion, *forward.shape[:2])).astype(forward.dtype)
    return corrected


def edge_motion(motion: CameraMotion, height: int, width: int) -> float:
    """The largest motion (px) that one of the parameters causes at a corner of the frame.

    Zoom and roll are per pixel from the middle, so their size means nothing without that of the frame.

    >>> edge_motion(CameraMotion(P=0.5, T=0.0, Z=0.01, R=0.0), 301, 401)  # the corner is 250 px from the middle
    2.5
    """
    corner = math.hypot((width - 1) / 2, (height - 1) / 2)
    return max(abs(motion.P), abs(motion.T), abs(motion.Z) * corner, abs(motion.R) * corner)


def _axes(height: int, width: int) -> tuple[Floats, Floats]:
    rows, columns = np.arange(height, dtype=np.float64), np.arange(width, dtype=np.float64)
    return rows - (height - 1) / 2, columns - (width - 1) / 2


def _prepare(forward: AnyFloats, backward: AnyFloats | None, where: Bools | None) -> tuple[AnyFloats, Bools | None]:
    """The field to fit, zero where it is not used; finite, and defined on at least two pixels."""
    if forward.ndim != 3 or forward.shape[2] != 2:
        raise BadInput(f"A flow must have the shape (height, width, 2), not {forward.shape}.")
    if backward is not None and backward.shape != forward.shape:
        raise BadInput(f"The backward flow {backward.shape} must have the shape of the forward flow {forward.shape}.")
    if where is not None and (where.shape != forward.shape[:2] or where.dtype != np.bool_):
        found = f"{where.dtype} of shape {where.shape}"
        raise BadInput(f"The pixels of a camera fit must be bool of shape {forward.shape[:2]}, not {found}.")
    pixels = forward.shape[0] * forward.shape[1] if where is None else int(where.sum())
    if pixels < 2:
        raise BadInput(f"A camera fit needs at least 2 pixels, not {pixels}.")
    flow = forward if backward is None else (forward - backward) / 2
    if where is not None:
        flow = np.where(where[..., None], flow, flow.dtype.type(0))
    if not np.isfinite(flow).all():
        raise BadInput("The flow contains NaN or infinity.")
    return flow, where


def _solve(flow: AnyFloats, x: Floats, y: Floats, weights: AnyArray | None) -> CameraMotion:
    """Weighted least squares.

    About the centre of gravity of the weights the cross terms Σwx, Σwy vanish and the 4×4 normal equations are
    diagonal. x and y separate, so sums over rows and columns are all that is read of the pixels.
    """
    # As complex numbers u + iv: a reduction over pairs is several times slower, and a matrix product wakes threads.
    field = np.ascontiguousarray(flow, dtype=np.float64).view(np.complex128)[..., 0]
    if weights is None:
        heavy_x, heavy_y = np.full(x.size, float(y.size)), np.full(y.size, float(x.size))
    else:
        field = field * weights
        heavy_x, heavy_y = weights.sum(axis=0, dtype=np.float64), weights.sum(axis=1, dtype=np.float64)
    by_column, by_row = field.sum(axis=0), field.sum(axis=1)
    total = float(heavy_x.sum())
    mean = complex(by_column.sum()) / total
    mx, my = float(heavy_x @ x) / total, float(heavy_y @ y) / total
    x, y = x - mx, y - my
    spread = float(heavy_x @ (x * x) + heavy_y @ (y * y))
    if not spread > 0:
        raise BadInput("A camera fit needs pixels at two different places.")
    Z = -float(x @ by_column.real + y @ by_row.imag) / spread
    R = float(y @ by_row.real - x @ by_column.imag) / spread
    return CameraMotion(P=-mean.real - Z * mx + R * my, T=-mean.imag - Z * my - R * mx, Z=Z, R=R)


def _thin_out(
    flow: AnyFloats, used: Bools | None, x: Floats, y: Floats
) -> tuple[AnyFloats, Bools | None, Floats, Floats]:
    """A lattice of pixels that is large enough for a fit; all pixels if the lattice misses too many used ones."""
    pixels = x.size * y.size if used is None else int(used.sum())
    step = int(math.sqrt(pixels / _LATTICE))
    if step < 2 or (used is not None and used[::step, ::step].sum() * 2 < _LATTICE):
        return flow, used, x, y
    return flow[::step, ::step], None if used is None else used[::step, ::step], x[::step], y[::step]


def _residual(flow: AnyFloats, motion: CameraMotion, x: Floats, y: Floats) -> Floats:
    du = flow[..., 0] + (motion.P + motion.Z * x) - (motion.R * y)[:, None]
    dv = flow[..., 1] + (motion.T + motion.Z * y)[:, None] + motion.R * x
    lengths: Floats = np.sqrt(du * du + dv * dv)
    return lengths


def _scale(residual: Floats) -> float:
    return max(float(np.median(residual)) / _RAYLEIGH, _SMALLEST)


def _huber(residual: Floats, limit: float) -> Floats:
    return limit / np.maximum(residual, limit)


def _tukey(residual: Floats, limit: float) -> Floats:
    inner = np.maximum(1.0 - (residual / limit) ** 2, 0.0)
    return inner * inner


def _difference(a: CameraMotion, b: CameraMotion) -> CameraMotion:
    return CameraMotion(a.P - b.P, a.T - b.T, a.Z - b.Z, a.R - b.R)
