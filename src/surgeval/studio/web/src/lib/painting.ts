/** The timeline on a canvas: lanes with their runs and spans, the ruler above them, marks over all. */

import { colourOf, inkOn } from './palette'
import { classKey } from './schema'
import type { Edge, Range } from './spans'
import type { Tones } from './theme'
import { frameX, inSight, runPixels, tickStep, type Scale } from './timeline'
import { IMAGE, type ImageRun, type Span, type Track } from './types'

export type Run = [first: number, last: number]

export interface Lane {
  key: string
  track: Track
  runs: Run[]
}

/** Everything that a drawing shows; whoever makes one anew has said what the drawing depends on. */
export interface Scene {
  width: number
  height: number
  /** Pixels: of a lane, of the names at its left, of the ruler, and of what is scrolled away above. */
  lane: number
  gutter: number
  ruler: number
  top: number
  fontSize: number
  scale: Scale
  tones: Tones
  lanes: Lane[]
  spans: Map<string, Span[]>
  /** The span under the hand, as the hand has it. */
  dragged: { id: string; range: Range } | null
  chosenTracks: ReadonlySet<string>
  chosenSpan: string | null
  chosenEdge: Edge
  imageRuns: ImageRun[]
  imageName: string
  imageValues: Record<string, readonly string[]>
  classes: readonly string[]
  colours: Record<string, string>
  seenByAll: Run[]
  seenBySome: Run[]
  segments: Run[]
  flagged: Run[]
  range: Range | null
  marks: (number | null)[]
  shown: number
}

type Paint = CanvasRenderingContext2D

export function drawTimeline(paint: Paint, scene: Scene): void {
  const { width, height, lane, ruler, top, lanes, tones } = scene
  const ratio = window.devicePixelRatio || 1
  paint.canvas.width = Math.round(width * ratio)
  paint.canvas.height = Math.round(height * ratio)
  paint.setTransform(ratio, 0, 0, ratio, 0, 0)
  paint.fillStyle = tones.lane
  paint.fillRect(0, 0, width, height)
  paint.font = `${scene.fontSize}px system-ui, 'Noto Sans CJK SC', sans-serif`
  paint.textBaseline = 'middle'
  const first = Math.floor(top / lane)
  const last = Math.min(lanes.length, first + Math.ceil((height - ruler) / lane) + 1)
  for (let place = first; place < last; place++) drawLane(paint, scene, lanes[place] as Lane, ruler + place * lane - top)
  drawRuler(paint, scene)
  drawMarks(paint, scene)
  const room = height - ruler
  const all = lanes.length * lane
  if (all > room) {
    paint.fillStyle = tones.faint
    paint.fillRect(width - 4, ruler + (top / all) * room, 3, Math.max(12, (room / all) * room))
  }
}

function drawLane(paint: Paint, scene: Scene, { key, track, runs }: Lane, y: number): void {
  const { lane, gutter, scale, tones } = scene
  const image = track.group === IMAGE
  const colour = image ? tones.muted : colourOf(classKey(track), scene.classes, scene.colours)
  paint.fillStyle = scene.chosenTracks.has(key) ? tones.chosen : tones.panel
  paint.fillRect(0, y + 1, scene.width, lane - 1)
  within(paint, [gutter, y, scale.width, lane], () => {
    paint.fillStyle = colour
    paint.globalAlpha = 0.75
    for (const [x, w] of runPixels(runs, scale)) paint.fillRect(gutter + x, y + lane * 0.75, w, lane * 0.15)
    if (image) drawImageRuns(paint, scene, y)
    paint.globalAlpha = 1
    for (const span of scene.spans.get(key) ?? []) drawSpan(paint, scene, span, y, image ? imageColour(scene, span) : colour)
  })
  paint.fillStyle = colour
  paint.fillRect(lane * 0.2, y + lane * 0.3, lane * 0.4, lane * 0.4)
  paint.fillStyle = tones.text
  within(paint, [lane * 0.8, y, gutter - lane, lane], () => {
    paint.fillText(image ? scene.imageName : `${track.name} #${track.number ?? '–'}`, lane * 0.9, y + lane / 2)
  })
}

/** What holds for whole frames, however it was said: spans lie above it. */
function drawImageRuns(paint: Paint, scene: Scene, y: number): void {
  for (const run of inSight(scene.imageRuns, scene.scale)) {
    const [x, w] = stretch(scene, run, 1)
    const colour = imageColour(scene, run)
    paint.fillStyle = colour
    paint.globalAlpha = 0.6
    paint.fillRect(x, y + 2, w, scene.lane - 4)
    paint.globalAlpha = 1
    drawValues(paint, scene, Object.values(run.values), [x, w], y, colour)
  }
}

/** Phases follow each other: a colour for each value tells them apart where there is no room for the word. */
function imageColour(scene: Scene, said: { values: Record<string, string | null> }): string {
  const [attribute, value] = Object.entries(said.values)[0] ?? ['', null]
  return value === null ? '#a9b4c2' : colourOf(value, scene.imageValues[attribute] ?? [], {})
}

function drawSpan(paint: Paint, scene: Scene, span: Span, y: number, colour: string): void {
  const { lane, scale, tones } = scene
  const range = scene.dragged?.id === span.id ? scene.dragged.range : span
  if (range.last < scale.first || range.first > scale.last) return
  const [x, w] = stretch(scene, range, 2)
  const chosen = span.id === scene.chosenSpan
  paint.fillStyle = colour
  paint.globalAlpha = chosen ? 1 : 0.85
  paint.fillRect(x, y + 2, w, lane * 0.6)
  paint.globalAlpha = 1
  paint.strokeStyle = chosen ? tones.needle : tones.panel
  paint.strokeRect(x + 0.5, y + 2.5, Math.max(1, w - 1), lane * 0.6 - 1)
  if (chosen) {
    paint.fillStyle = tones.needle
    paint.fillRect(scene.chosenEdge === 'first' ? x - 1 : x + w - 3, y + 1, 4, lane * 0.6 + 2)
  }
  drawValues(paint, scene, Object.values(span.values).map((value) => value ?? '∅'), [x, w], y, colour)
}

/** The words of a run or a span, where there is room for them. */
function drawValues(paint: Paint, { lane, gutter }: Scene, values: string[], [x, w]: [number, number], y: number, colour: string): void {
  if (w <= 24) return
  within(paint, [x, y, w - 2, lane], () => {
    paint.fillStyle = inkOn(colour)
    paint.fillText(values.join(' · '), Math.max(x, gutter) + 4, y + 2 + lane * 0.31)
  })
}

function drawRuler(paint: Paint, scene: Scene): void {
  const { gutter, ruler, scale, tones } = scene
  paint.fillStyle = tones.panel
  paint.fillRect(0, 0, scene.width, ruler)
  paint.fillStyle = tones.muted
  const step = tickStep(scale)
  for (let frame = Math.ceil(scale.first / step) * step; frame <= scale.last; frame += step) {
    const x = gutter + frameX(scale, frame)
    paint.fillRect(x, ruler - 5, 1, 5)
    paint.fillText(String(frame), x + 3, ruler / 2 - 1)
  }
  const stripe = (runs: Run[], colour: string, y: number, least: number): void => {
    paint.fillStyle = colour
    for (const [x, w] of runPixels(runs, scale)) paint.fillRect(gutter + x, y, Math.max(least, w), 3)
  }
  stripe(scene.seenByAll, tones.good, 0, 0)
  stripe(scene.seenBySome, tones.warn, 0, 0)
  stripe(scene.segments, tones.accent, 0, 0)
  stripe(scene.flagged, tones.bad, ruler - 3, 2)
}

function drawMarks(paint: Paint, { gutter, height, range, marks, scale, shown, tones }: Scene): void {
  paint.fillStyle = tones.accent
  if (range) {
    const x = gutter + Math.max(0, frameX(scale, range.first))
    const end = gutter + Math.min(scale.width, frameX(scale, range.last + 1))
    paint.globalAlpha = 0.18
    if (end > x) paint.fillRect(x, 0, end - x, height)
    paint.globalAlpha = 1
  }
  for (const mark of marks) {
    if (mark !== null && mark >= scale.first && mark <= scale.last) paint.fillRect(gutter + frameX(scale, mark), 0, 2, height)
  }
  if (shown >= scale.first && shown <= scale.last) {
    paint.fillStyle = tones.needle
    paint.fillRect(Math.round(gutter + frameX(scale, shown + 0.5)) - 1, 0, 2, height)
  }
}

/** Where a range begins and how wide it is; what lies out of sight is cut off just beyond the edge. */
function stretch({ gutter, scale }: Scene, range: Range, least: number): [number, number] {
  const x = gutter + Math.max(-2, frameX(scale, range.first))
  return [x, Math.max(least, gutter + Math.min(scale.width + 2, frameX(scale, range.last + 1)) - x)]
}

function within(paint: Paint, [x, y, width, height]: [number, number, number, number], draw: () => void): void {
  paint.save()
  paint.beginPath()
  paint.rect(x, y, width, height)
  paint.clip()
  draw()
  paint.restore()
}
