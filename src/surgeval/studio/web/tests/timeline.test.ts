import { describe, expect, it } from 'vitest'
import { edgeAt, following, frameX, inSight, runPixels, shifted, tickStep, xFrame, zoomed, type Scale } from '../src/lib/timeline'

const scale: Scale = { first: 0, last: 99_999, width: 1000 }

describe('frames and pixels', () => {
  it('agree', () => {
    for (const frame of [0, 50, 12_345, 99_999]) {
      const near: Scale = { first: frame, last: frame + 99, width: 1000 }
      expect(xFrame(near, frameX(near, frame) + 1)).toBe(frame)
    }
  })
  it('keep their place when zooming, inside the video', () => {
    const closer = zoomed(scale, 500, 0.5, 100_000)
    expect([closer.first, closer.last]).toEqual([25_000, 74_999])
    expect(zoomed(closer, 0, 100, 100_000)).toMatchObject({ first: 0, last: 99_999 })
    const closest = zoomed(scale, 999, 1e-9, 100_000)
    expect(closest.last - closest.first + 1).toBeCloseTo(12)
    expect(closest.last).toBeLessThanOrEqual(99_999)
  })
  it('work for a video of three frames', () => {
    expect(zoomed({ first: 0, last: 2, width: 100 }, 50, 0.1, 3)).toMatchObject({ first: 0, last: 2 })
  })
  it('follow the current frame', () => {
    const near: Scale = { first: 100, last: 199, width: 1000 }
    expect(following(near, 150, 100_000)).toBe(near)
    const on = following(near, 200, 100_000)
    expect(on.first).toBeLessThanOrEqual(200)
    expect(on.last).toBeGreaterThanOrEqual(200)
    expect(shifted(near, -1000, 100_000)).toMatchObject({ first: 0, last: 99 })
  })
})

describe('drawing', () => {
  it('turns a hundred thousand short runs into at most a run per two pixels', () => {
    const runs = Array.from({ length: 33_333 }, (_, n): [number, number] => [3 * n, 3 * n])
    expect(runPixels(runs, scale).length).toBeLessThanOrEqual(500)
  })
  it('leaves out what is not in sight and cuts at the borders', () => {
    const near: Scale = { first: 100, last: 199, width: 1000 }
    expect(runPixels([[0, 50], [90, 109], [150, 150], [190, 500], [600, 700]], near)).toEqual([[0, 100], [500, 10], [900, 100]])
  })
  it('has round ticks with room between them', () => {
    expect(tickStep(scale)).toBe(10_000)
    expect(tickStep({ first: 0, last: 99, width: 1000 })).toBe(10)
  })
  it('finds the edge under the hand', () => {
    const near: Scale = { first: 0, last: 99, width: 1000 }
    expect(edgeAt(near, { first: 10, last: 19 }, 103)).toBe('first')
    expect(edgeAt(near, { first: 10, last: 19 }, 198)).toBe('last')
    expect(edgeAt(near, { first: 10, last: 19 }, 150)).toBeNull()
    expect(edgeAt(near, { first: 10, last: 10 }, 107)).toBe('last')
  })
})

describe('ranges', () => {
  it('are those in sight, also where they only reach in', () => {
    const runs = [[0, 3], [5, 12], [14, 14], [20, 30]].map(([first, last]) => ({ first: first as number, last: last as number }))
    expect(inSight(runs, { first: 10, last: 20, width: 100 }).map((run) => run.first)).toEqual([5, 14, 20])
  })
})
