/** Ranges of frames, typed places, and what the edges of a span may do. */

import type { Span } from './types'

export interface Range {
  first: number
  last: number
}

export type Edge = 'first' | 'last'

/** Two marks in either order. */
export function rangeOf(a: number, b: number): Range {
  return { first: Math.min(a, b), last: Math.max(a, b) }
}

export function frameWithin(frame: number, frames: number): number {
  return Math.max(0, Math.min(Math.max(0, frames - 1), Math.round(frame)))
}

/** An edge at another frame; it stops at the other edge and at the video's ends. */
export function edgeMoved(range: Range, edge: Edge, to: number, frames: number): Range {
  const frame = frameWithin(to, frames)
  return edge === 'first'
    ? { first: Math.min(frame, range.last), last: range.last }
    : { first: range.first, last: Math.max(frame, range.first) }
}

/**
 * A frame as a person types it: 120, or a time such as 1:05, 00:01:05.5 or 65s. Null where it is neither.
 * Times go by the rate.
 */
export function parseFrame(text: string, frames: number, fps: number): number | null {
  const clean = text.trim()
  if (/^\d+$/.test(clean)) return Number(clean) < frames ? Number(clean) : null
  const seconds = parseSeconds(clean)
  if (seconds === null) return null
  const frame = Math.round(seconds * fps)
  return frame < frames ? frame : null
}

export function parseSeconds(text: string): number | null {
  const plain = /^(\d+(?:\.\d+)?)s$/.exec(text)
  if (plain) return Number(plain[1])
  if (!/^\d+(?::\d{1,2}){1,2}(?:\.\d+)?$/.test(text)) return null
  return text.split(':').reduce((total, part) => total * 60 + Number(part), 0)
}

const SHOWN = 0.006 // seconds that a time loses when it is written with two digits
const MOST_STEPS = 20_000

/** The frame on the screen at a time, sought from a guess on; null after the last frame's time. */
export async function frameAtTime(
  seconds: number, guess: number, frames: number, time: (frame: number) => Promise<number>,
): Promise<number | null> {
  let frame = guess
  let steps = 0
  while (frame > 0 && (await time(frame)) > seconds + SHOWN && steps++ < MOST_STEPS) frame -= 1
  while (frame < frames - 1 && (await time(frame + 1)) <= seconds + SHOWN && steps++ < MOST_STEPS) frame += 1
  const last = frame === frames - 1 && frame > 0 ? await time(frame) : null
  return last !== null && seconds > 2 * last - (await time(frame - 1)) + SHOWN ? null : frame
}

export function timeText(seconds: number): string {
  const whole = Math.floor(seconds)
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const text = parts.map((part) => String(part).padStart(2, '0')).join(':')
  const rest = Math.round((seconds - whole) * 100)
  return rest && rest < 100 ? `${text}.${String(rest).padStart(2, '0')}` : text
}

/** Spans in the order they count: a later one wins, so it comes later and is drawn on top. */
export function drawingOrder(spans: Span[]): Span[] {
  const below = new Set(spans.filter((span) => span.overridden_by.length).map((span) => span.id))
  return [...spans].sort(
    (a, b) => Number(below.has(b.id)) - Number(below.has(a.id)) || a.time - b.time || (a.id < b.id ? -1 : 1),
  )
}

/** Whether two spans can become one: same tracks, same values. */
export function joinable(a: Span, b: Span): boolean {
  const text = (span: Span): string =>
    JSON.stringify([
      span.tracks.map((t) => [t.group, t.name, t.number]).sort(),
      Object.entries(span.values).sort(([x], [y]) => (x < y ? -1 : 1)),
    ])
  return a.id !== b.id && text(a) === text(b)
}

/** The joinable span nearest to this one. */
export function neighbour(span: Span, spans: Span[]): Span | null {
  const gap = (other: Span): number => Math.max(other.first - span.last, span.first - other.last, 0)
  return (
    spans.filter((other) => joinable(span, other)).sort((a, b) => gap(a) - gap(b) || (a.id < b.id ? -1 : 1))[0] ?? null
  )
}

/** The next frame of playback: round and round inside a range, or on to the end (null: stop). */
export function nextFrame(frame: number, step: number, frames: number, loop: Range | null): number | null {
  const wanted = frame + step
  if (loop) {
    const size = loop.last - loop.first + 1
    if (frame < loop.first || frame > loop.last) return loop.first
    return loop.first + ((((wanted - loop.first) % size) + size) % size)
  }
  return wanted >= frames ? (frame >= frames - 1 ? null : frames - 1) : wanted
}

/** The ranges that have passed, the last one growing with the frame: either way along, or round a loop's end. */
export function passedOn(passed: Range[], frame: number, loop: Range | null): Range[] {
  const now = passed.at(-1)
  if (!now) return [{ first: frame, last: frame }]
  if (loop && frame < now.first && now.last <= loop.last) {
    return [...passed.slice(0, -1), { first: now.first, last: loop.last }, { first: loop.first, last: frame }]
  }
  return [...passed.slice(0, -1), { first: Math.min(now.first, frame), last: Math.max(now.last, frame) }]
}

/** Ranges in order, those that touch as one. */
export function merged(ranges: Range[]): Range[] {
  const result: Range[] = []
  for (const range of [...ranges].sort((a, b) => a.first - b.first)) {
    const previous = result.at(-1)
    if (previous && range.first <= previous.last + 1) previous.last = Math.max(previous.last, range.last)
    else result.push({ ...range })
  }
  return result
}
