/** A hand on shapes: what it holds, where it has brought it, and how that looks meanwhile. */

import {
  around, boxBetween, clipped, keptInside, moved, movedPolygons, pointInside, resized, stretched, vertexMoved,
  type Handle, type Size,
} from './geometry'
import type { Annotation, Box, Point } from './types'

export type Drag =
  | { kind: 'draw'; from: Point; to: Point }
  | { kind: 'move'; of: Annotation[]; from: Point; dx: number; dy: number; far: boolean }
  | { kind: 'resize'; of: Annotation; handle: Handle; from: Point; box: Box }
  | { kind: 'vertex'; of: Annotation; polygons: Point[][]; polygon: number; vertex: number }

/** Pixels on the screen that a hand trembles: a shape moved by less was clicked. */
const TREMBLE = 3

/** The drag with the hand at `point` of a picture that is shown at `scale`; nothing leaves the picture. */
export function draggedTo(drag: Drag, point: Point, picture: Size, scale: number): Drag {
  switch (drag.kind) {
    case 'draw':
      return { ...drag, to: point }
    case 'move': {
      const [wx, wy] = [point[0] - drag.from[0], point[1] - drag.from[1]]
      const [dx, dy] = keptInside(around(drag.of), wx, wy, picture)
      return { ...drag, dx, dy, far: drag.far || Math.hypot(wx, wy) * scale > TREMBLE }
    }
    case 'resize': {
      const box = resized(drag.of.box, drag.handle, point[0] - drag.from[0], point[1] - drag.from[1])
      return { ...drag, box: clipped(box, picture) }
    }
    case 'vertex':
      return { ...drag, polygons: vertexMoved(drag.polygons, drag.polygon, drag.vertex, pointInside(point, picture)) }
  }
}

export function drawnBox({ from, to }: { from: Point; to: Point }, picture: Size): Box {
  return clipped(boxBetween(from, to), picture)
}

/** A shape as it is stored, or as the hand that holds it has it. */
export function underHand(drag: Drag | null, one: Annotation): Annotation {
  if (drag?.kind === 'move' && drag.far && drag.of.some((other) => other.id === one.id)) {
    return { ...one, box: moved(one.box, drag.dx, drag.dy), polygons: movedPolygons(one.polygons, drag.dx, drag.dy) }
  }
  if (drag?.kind === 'resize' && drag.of.id === one.id) {
    return { ...one, box: drag.box, polygons: stretched(one.polygons, one.box, drag.box) }
  }
  if (drag?.kind === 'vertex' && drag.of.id === one.id) return { ...one, polygons: drag.polygons }
  return one
}
