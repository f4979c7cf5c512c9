/** Where labels go: beside their box, not over each other; and how much they hide there, so that they can fade. */

import { overlap, type Size } from './geometry'
import type { Box, Point } from './types'

export interface LabelWish {
  id: string
  /** On the screen. */
  box: Box
  width: number
  height: number
  tip: Point
}

export interface PlacedLabel {
  id: string
  x: number
  y: number
  width: number
  height: number
  /** 0 where it hides nothing; up to 1 where it covers a tip, another label or another box. */
  hides: number
  /** From the label to its box, where it had to go some way. */
  leader: [Point, Point] | null
}

const TIP = 14

/** Roughly how wide a text is: wide characters (Chinese) count double. */
export function textWidth(text: string, fontSize: number): number {
  let units = 0
  for (const char of text) units += (char.codePointAt(0) ?? 0) > 0x2e7f ? 1.02 : 0.57
  return units * fontSize
}

/** Places for all labels, the topmost box first, so that small moves of a box change little. */
export function placeLabels(wishes: LabelWish[], stage: Size): PlacedLabel[] {
  const placed: PlacedLabel[] = []
  const tips = wishes.map(({ tip: [x, y] }): Box => [x - TIP, y - TIP, 2 * TIP, 2 * TIP])
  const order = [...wishes].sort((a, b) => a.box[1] - b.box[1] || a.box[0] - b.box[0] || (a.id < b.id ? -1 : 1))
  for (const wish of order) {
    const others = wishes.filter((other) => other.id !== wish.id).map((other) => other.box)
    const taken = placed.map((one): Box => [one.x, one.y, one.width, one.height])
    let best: { cost: number; at: Box; hides: number } | null = null
    ;[...candidates(wish), ...besideLabels(wish, taken)].forEach((candidate, rank) => {
      const at = within(candidate, stage)
      const area = at[2] * at[3]
      const onLabels = sum(taken, at) / area
      const onTips = sum(tips, at) / area
      const onBoxes = sum(others, at) / area
      const far = gap(at, wish.box) / wish.height
      const cost = (onLabels ? 100 + onLabels : 0) + onTips * 6 + onBoxes + Math.min(rank, 12) * 0.1 + far * 0.35
      if (!best || cost < best.cost) best = { cost, at, hides: Math.min(1, Math.max(onLabels, onBoxes, most(tips, at))) }
    })
    const { at, hides } = best as unknown as { at: Box; hides: number }
    const leader = gap(at, wish.box) > wish.height / 2 ? leaderOf(at, wish.box) : null
    placed.push({ id: wish.id, x: at[0], y: at[1], width: at[2], height: at[3], hides, leader })
  }
  return placed
}

function candidates({ box: [x, y, w, h], width, height }: LabelWish): Box[] {
  const gap = 2
  const tops = [y - height - gap, y + h + gap, y - 2 * (height + gap), y + h + gap + height + gap]
  const beside = tops.flatMap((top): Box[] => [
    [x, top, width, height],
    [x + w - width, top, width, height],
  ])
  const middle = y + h / 2 - height / 2
  return [
    ...beside.slice(0, 4),
    [x + gap, y + gap, width, height],
    [x + w + gap, middle, width, height],
    [x - width - gap, middle, width, height],
    ...beside.slice(4),
    [x + gap, y + h - height - gap, width, height],
    [x + w + gap, y, width, height],
    [x - width - gap, y, width, height],
  ]
}

/** In a crowd: just above, below or beside a label that is already there. */
function besideLabels({ box: [x, y], width, height }: LabelWish, taken: Box[]): Box[] {
  const gap = 1
  const near = taken.flatMap(([tx, ty, tw, th]): Box[] => [
    [x, ty + th + gap, width, height],
    [x, ty - height - gap, width, height],
    [tx + tw + gap, ty, width, height],
    [tx - width - gap, ty, width, height],
  ])
  const far = ([bx, by]: Box): number => Math.hypot(bx - x, by - y)
  return near.sort((a, b) => far(a) - far(b))
}

function within([x, y, w, h]: Box, stage: Size): Box {
  return [Math.max(0, Math.min(stage.width - w, x)), Math.max(0, Math.min(stage.height - h, y)), w, h]
}

/** The largest part of one of the boxes that is covered: a tip that is hidden is hidden, however long the label. */
function most(boxes: Box[], at: Box): number {
  return boxes.reduce((largest, box) => Math.max(largest, overlap(box, at) / (box[2] * box[3])), 0)
}

/** How far two boxes are apart; 0 where they touch. */
function gap([ax, ay, aw, ah]: Box, [bx, by, bw, bh]: Box): number {
  return Math.hypot(Math.max(bx - ax - aw, ax - bx - bw, 0), Math.max(by - ay - ah, ay - by - bh, 0))
}

/** The shortest line between a label and its box. */
function leaderOf(label: Box, box: Box): [Point, Point] {
  const nearest = (size: number, start: number, otherSize: number, other: number): [number, number] => {
    if (start + size < other) return [start + size, other]
    if (other + otherSize < start) return [start, other + otherSize]
    const middle = (Math.max(start, other) + Math.min(start + size, other + otherSize)) / 2
    return [middle, middle]
  }
  const [x1, x2] = nearest(label[2], label[0], box[2], box[0])
  const [y1, y2] = nearest(label[3], label[1], box[3], box[1])
  return [[x1, y1], [x2, y2]]
}

function sum(boxes: Box[], at: Box): number {
  return boxes.reduce((total, box) => total + overlap(box, at), 0)
}
