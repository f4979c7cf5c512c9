/** Frames to pixels and back, and what to draw of a hundred thousand frames in a thousand pixels. */

import type { Range } from './spans'

export interface Scale {
  /** The first and last frame in sight; fractions while zooming. */
  first: number
  last: number
  width: number
}

export function frameX(scale: Scale, frame: number): number {
  return ((frame - scale.first) / (scale.last - scale.first + 1)) * scale.width
}

export function xFrame(scale: Scale, x: number): number {
  return Math.floor(scale.first + (x / scale.width) * (scale.last - scale.first + 1))
}

/** Zoomed about a place, inside the video, never below a dozen frames. */
export function zoomed(scale: Scale, x: number, factor: number, frames: number): Scale {
  const size = scale.last - scale.first + 1
  const wanted = Math.min(frames, Math.max(Math.min(12, frames), size * factor))
  const at = scale.first + (x / scale.width) * size
  return inside({ ...scale, first: at - (x / scale.width) * wanted }, wanted, frames)
}

export function shifted(scale: Scale, by: number, frames: number): Scale {
  return inside({ ...scale, first: scale.first + by }, scale.last - scale.first + 1, frames)
}

/** The same zoom, moved so that a frame is in sight (near an edge it scrolls on by most of a page). */
export function following(scale: Scale, frame: number, frames: number): Scale {
  const size = scale.last - scale.first + 1
  if (frame >= scale.first && frame <= scale.last) return scale
  return inside({ ...scale, first: frame < scale.first ? frame - size * 0.85 : frame - size * 0.15 }, size, frames)
}

function inside(scale: Scale, size: number, frames: number): Scale {
  const first = Math.max(0, Math.min(frames - size, scale.first))
  return { ...scale, first, last: first + size - 1 }
}

/** Runs in sight as [x, width], neighbours closer than a pixel drawn as one. */
export function runPixels(runs: [number, number][], scale: Scale): [number, number][] {
  const drawn: [number, number][] = []
  for (let place = firstInSight(runs, scale.first); place < runs.length; place++) {
    const [first, last] = runs[place] as [number, number]
    if (first > scale.last) break
    const x = Math.max(0, frameX(scale, first))
    const end = Math.min(scale.width, frameX(scale, last + 1))
    const previous = drawn.at(-1)
    if (previous && x <= previous[0] + previous[1] + 1) previous[1] = Math.max(previous[1], end - previous[0])
    else drawn.push([x, Math.max(1, end - x)])
  }
  return drawn
}

function firstInSight(runs: [number, number][], frame: number): number {
  let [low, high] = [0, runs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((runs[middle] as [number, number])[1] < frame) low = middle + 1
    else high = middle
  }
  return low
}

/** The ranges in sight, of a list in the order of frames. */
export function inSight<T extends Range>(ranges: T[], scale: Scale): T[] {
  const found: T[] = []
  for (const range of ranges) {
    if (range.first > scale.last) break
    if (range.last >= scale.first) found.push(range)
  }
  return found
}

/** A round distance between ticks, at least `room` pixels apart. */
export function tickStep(scale: Scale, room = 70): number {
  const frames = ((scale.last - scale.first + 1) / scale.width) * room
  for (let power = 1; ; power *= 10) {
    for (const factor of [1, 2, 5]) if (power * factor >= frames) return power * factor
  }
}

/** Which edge of a range a pointer at `x` holds, if any; the nearer of two. */
export function edgeAt(scale: Scale, range: Range, x: number, reach = 6): 'first' | 'last' | null {
  const left = Math.abs(x - frameX(scale, range.first))
  const right = Math.abs(x - frameX(scale, range.last + 1))
  if (Math.min(left, right) > reach) return null
  return left < right ? 'first' : 'last'
}
