/** Boxes, polygons and the view; all in pixels of the picture unless a name says screen. */

import type { Box, Point } from './types'

export interface View {
  scale: number
  x: number
  y: number
}

export interface Size {
  width: number
  height: number
}

export type Handle = 'nw' | 'n' | 'ne' | 'e' | 'se' | 's' | 'sw' | 'w'
export const HANDLES: readonly Handle[] = ['nw', 'n', 'ne', 'e', 'se', 's', 'sw', 'w']
const SMALLEST = 0.02
const LARGEST = 40

export function toScreen(view: View, [x, y]: Point): Point {
  return [x * view.scale + view.x, y * view.scale + view.y]
}

export function toPicture(view: View, [x, y]: Point): Point {
  return [(x - view.x) / view.scale, (y - view.y) / view.scale]
}

export function boxToScreen(view: View, [x, y, w, h]: Box): Box {
  return [x * view.scale + view.x, y * view.scale + view.y, w * view.scale, h * view.scale]
}

/** The whole picture in the middle of the stage. */
export function fit(picture: Size, stage: Size, margin = 8): View {
  const room = { width: Math.max(1, stage.width - 2 * margin), height: Math.max(1, stage.height - 2 * margin) }
  const scale = Math.min(room.width / picture.width, room.height / picture.height)
  return {
    scale,
    x: (stage.width - picture.width * scale) / 2,
    y: (stage.height - picture.height * scale) / 2,
  }
}

/** Larger or smaller, with the point under the cursor staying where it is. */
export function zoomAt(view: View, [x, y]: Point, factor: number): View {
  const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor))
  const share = scale / view.scale
  return { scale, x: x - (x - view.x) * share, y: y - (y - view.y) * share }
}

export function pan(view: View, dx: number, dy: number): View {
  return { ...view, x: view.x + dx, y: view.y + dy }
}

export function boxBetween([ax, ay]: Point, [bx, by]: Point): Box {
  return [Math.min(ax, bx), Math.min(ay, by), Math.abs(ax - bx), Math.abs(ay - by)]
}

export function moved([x, y, w, h]: Box, dx: number, dy: number): Box {
  return [x + dx, y + dy, w, h]
}

/** A side or corner dragged; past the opposite side the box turns over instead of getting a negative size. */
export function resized([x, y, w, h]: Box, handle: Handle, dx: number, dy: number): Box {
  let [left, top, right, bottom] = [x, y, x + w, y + h]
  if (handle.includes('w')) left += dx
  if (handle.includes('e')) right += dx
  if (handle.includes('n')) top += dy
  if (handle.includes('s')) bottom += dy
  return boxBetween([left, top], [right, bottom])
}

/** The part inside the picture; a box wholly outside keeps its place, so that nothing vanishes. */
export function clipped([x, y, w, h]: Box, picture: Size): Box {
  const left = Math.max(0, x)
  const top = Math.max(0, y)
  const right = Math.min(picture.width, x + w)
  const bottom = Math.min(picture.height, y + h)
  return right <= left || bottom <= top ? [x, y, w, h] : [left, top, right - left, bottom - top]
}

/** The shift that keeps a moved box inside the picture. */
export function keptInside([x, y, w, h]: Box, dx: number, dy: number, picture: Size): Point {
  const within = (start: number, size: number, shift: number, limit: number): number =>
    size >= limit ? shift : Math.min(limit - size, Math.max(0, start + shift)) - start
  return [within(x, w, dx, picture.width), within(y, h, dy, picture.height)]
}

/** The nearest point of the picture. */
export function pointInside([x, y]: Point, picture: Size): Point {
  return [Math.max(0, Math.min(picture.width, x)), Math.max(0, Math.min(picture.height, y))]
}

/** Tenths of a pixel: what a hand can mean, and short to send. */
export function rounded<T extends number[]>(numbers: T): T {
  return numbers.map((one) => Math.round(one * 10) / 10) as T
}

export function handlePoint([x, y, w, h]: Box, handle: Handle): Point {
  const across = handle.includes('w') ? 0 : handle.includes('e') ? 1 : 0.5
  const down = handle.includes('n') ? 0 : handle.includes('s') ? 1 : 0.5
  return [x + w * across, y + h * down]
}

export function boundsOf(polygons: Point[][]): Box {
  const xs = polygons.flatMap((polygon) => polygon.map(([x]) => x))
  const ys = polygons.flatMap((polygon) => polygon.map(([, y]) => y))
  const [left, top] = [Math.min(...xs), Math.min(...ys)]
  return [left, top, Math.max(...xs) - left, Math.max(...ys) - top]
}

/** The box around several things. */
export function around(things: { box: Box }[]): Box {
  return boundsOf(things.map(({ box: [x, y, w, h] }): Point[] => [[x, y], [x + w, y + h]]))
}

export function movedPolygons(polygons: Point[][], dx: number, dy: number): Point[][] {
  return polygons.map((polygon) => polygon.map(([x, y]) => [x + dx, y + dy] as Point))
}

/** Polygons stretched as their bounding box is. */
export function stretched(polygons: Point[][], from: Box, to: Box): Point[][] {
  const [sx, sy] = [from[2] ? to[2] / from[2] : 1, from[3] ? to[3] / from[3] : 1]
  return polygons.map((polygon) =>
    polygon.map(([x, y]) => [to[0] + (x - from[0]) * sx, to[1] + (y - from[1]) * sy] as Point),
  )
}

export function vertexMoved(polygons: Point[][], polygon: number, vertex: number, to: Point): Point[][] {
  return polygons.map((one, number) => (number === polygon ? one.map((p, v) => (v === vertex ? to : p)) : one))
}

/** A vertex less; a triangle stays as it is. */
export function vertexRemoved(polygons: Point[][], polygon: number, vertex: number): Point[][] {
  return polygons.map((one, number) =>
    number === polygon && one.length > 3 ? one.filter((_, v) => v !== vertex) : one,
  )
}

/** A vertex more, after `after`. */
export function vertexInserted(polygons: Point[][], polygon: number, after: number, at: Point): Point[][] {
  return polygons.map((one, number) =>
    number === polygon ? [...one.slice(0, after + 1), at, ...one.slice(after + 1)] : one,
  )
}

/** The middle of each side: where a new vertex can be pulled out. */
export function middles(polygon: Point[]): Point[] {
  return polygon.map(([x, y], place) => {
    const [nx, ny] = polygon[(place + 1) % polygon.length] ?? [x, y]
    return [(x + nx) / 2, (y + ny) / 2]
  })
}

export function insideBox([x, y, w, h]: Box, [px, py]: Point): boolean {
  return px >= x && px <= x + w && py >= y && py <= y + h
}

export function overlap(a: Box, b: Box): number {
  const width = Math.min(a[0] + a[2], b[0] + b[2]) - Math.max(a[0], b[0])
  const height = Math.min(a[1] + a[3], b[1] + b[3]) - Math.max(a[1], b[1])
  return width > 0 && height > 0 ? width * height : 0
}

/** Where the tip of an instrument most likely is: what reaches furthest to the picture's centre. */
export function likelyTip([x, y, w, h]: Box, polygons: Point[][], picture: Size): Point {
  const [cx, cy] = [picture.width / 2, picture.height / 2]
  const away = ([px, py]: Point): number => Math.hypot(px - cx, py - cy)
  const outline = polygons.flat()
  if (outline.length) return outline.reduce((best, point) => (away(point) < away(best) ? point : best))
  return [x + w / 2 < picture.width / 2 ? x + w : x, y + h / 2 < picture.height / 2 ? y + h : y]
}
