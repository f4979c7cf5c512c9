import { describe, expect, it } from 'vitest'
import { overlap } from '../src/lib/geometry'
import { placeLabels, textWidth, type LabelWish } from '../src/lib/labels'
import type { Box } from '../src/lib/types'

const stage = { width: 800, height: 600 }
const wish = (id: string, box: Box, width = 90): LabelWish => ({ id, box, width, height: 30, tip: [box[0] + box[2], box[1] + box[3]] })

describe('labels', () => {
  it('stand above their box where there is room', () => {
    const [label] = placeLabels([wish('a', [100, 100, 80, 60])], stage)
    expect(label).toMatchObject({ x: 100, y: 68, hides: 0 })
  })
  it('never cover each other in a crowd', () => {
    const wishes = Array.from({ length: 8 }, (_, n) => wish(`b${n}`, [200 + n * 12, 200 + n * 9, 90, 70]))
    const placed = placeLabels(wishes, stage).map(({ x, y, width, height }): Box => [x, y, width, height])
    expect(placed).toHaveLength(8)
    for (const [n, one] of placed.entries()) {
      for (const other of placed.slice(n + 1)) expect(overlap(one, other)).toBe(0)
    }
  })
  it('stay on the stage', () => {
    for (const { x, y, width, height } of placeLabels([wish('a', [-30, -30, 40, 40]), wish('b', [790, 595, 40, 40])], stage)) {
      expect(x).toBeGreaterThanOrEqual(0)
      expect(y).toBeGreaterThanOrEqual(0)
      expect(x + width).toBeLessThanOrEqual(800)
      expect(y + height).toBeLessThanOrEqual(600)
    }
  })
  it('say how much of another box they must cover', () => {
    const placed = placeLabels([wish('large', [0, 0, 800, 600]), wish('small', [300, 300, 50, 50])], stage)
    expect(placed.find((one) => one.id === 'small')?.hides).toBe(1)
  })
  it('say that they cover a tip, however long they are', () => {
    const narrow = { width: 400, height: 34 } // room for nothing but a place on the tip
    const [label] = placeLabels([{ ...wish('a', [0, 2, 400, 30], 400), tip: [200, 17] }], narrow)
    expect(label?.hides).toBeGreaterThan(0.9)
  })
  it('keep off tips where there is room elsewhere', () => {
    const [label] = placeLabels([{ ...wish('a', [100, 100, 80, 60]), tip: [110, 90] }], stage)
    expect(label?.hides).toBe(0)
  })
  it('are led to their box where they had to go some way', () => {
    const crowd = Array.from({ length: 14 }, (_, n) => wish(`c${n}`, [300 + n, 300 + n, 60, 40]))
    const placed = placeLabels(crowd, stage)
    const led = placed.filter((one) => one.leader)
    expect(led.length).toBeGreaterThan(0)
    for (const { leader, x, y, width, height } of led) {
      const [[lx, ly]] = leader as [[number, number], [number, number]]
      expect(lx >= x && lx <= x + width && ly >= y && ly <= y + height).toBe(true)
    }
    expect(placeLabels([wish('alone', [300, 300, 60, 40])], stage)[0]?.leader).toBeNull()
  })
  it('do not depend on the order of the boxes', () => {
    const wishes = [wish('a', [100, 100, 50, 50]), wish('b', [110, 110, 50, 50]), wish('c', [90, 130, 50, 50])]
    expect(placeLabels([...wishes].reverse(), stage)).toEqual(placeLabels(wishes, stage))
  })
  it('count wide characters', () => {
    expect(textWidth('剪刀', 10)).toBeGreaterThan(textWidth('ab', 10) * 1.5)
  })
})
