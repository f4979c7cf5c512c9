import { describe, expect, it } from 'vitest'
import { drawingOrder, edgeMoved, frameAtTime, frameWithin, joinable, merged, neighbour, nextFrame, parseFrame, parseSeconds, passedOn, rangeOf, timeText } from '../src/lib/spans'
import type { Span } from '../src/lib/types'

const span = (id: string, first: number, last: number, more: Partial<Span> = {}): Span => ({
  id, first, last, tracks: [{ group: 'tools', name: 'scissors', number: 1 }], values: { action: 'cut' }, author: '', time: 0,
  source: 'hand', overridden_by: [], version: 1, ...more,
})

describe('ranges', () => {
  it('are marked in either order', () => expect(rangeOf(9, 3)).toEqual({ first: 3, last: 9 }))
  it('stay within the video', () => {
    expect(frameWithin(-4, 10)).toBe(0)
    expect(frameWithin(99, 10)).toBe(9)
  })
  it('have edges that stop at each other and at the ends', () => {
    expect(edgeMoved({ first: 3, last: 6 }, 'first', 9, 100)).toEqual({ first: 6, last: 6 })
    expect(edgeMoved({ first: 3, last: 6 }, 'last', 1, 100)).toEqual({ first: 3, last: 3 })
    expect(edgeMoved({ first: 3, last: 6 }, 'last', 1000, 100)).toEqual({ first: 3, last: 99 })
  })
})

describe('typed places', () => {
  it.each([
    ['120', 120], [' 7 ', 7], ['1:05', 130], ['00:01:05.5', 131], ['65s', 130], ['5000', null], ['1:99:99:9', null],
    ['', null], ['x', null], ['-3', null],
  ] as const)('%s', (text, frame) => expect(parseFrame(text, 1000, 2)).toBe(frame))
  it('are a second each where the rate is one', () => expect(parseFrame('0:30', 1000, 1)).toBe(30))
  it('go back and forth', () => expect(parseSeconds(timeText(3725.25))).toBe(3725.25))
})

describe('stored spans', () => {
  it('draw the overridden ones first', () => {
    const order = drawingOrder([span('late', 0, 9, { time: 1 }), span('old', 0, 9, { time: 5, overridden_by: ['late'] })])
    expect(order.map((one) => one.id)).toEqual(['old', 'late'])
  })
  it('join with the nearest of the same tracks and values', () => {
    const one = span('a', 10, 20)
    const others = [span('far', 80, 90), span('near', 25, 30), span('other', 21, 22, { values: { action: 'null' } })]
    expect(neighbour(one, [one, ...others])?.id).toBe('near')
    expect(joinable(one, one)).toBe(false)
    expect(neighbour(one, [one])).toBeNull()
  })
})

describe('playback', () => {
  it('stops after the last frame', () => {
    expect(nextFrame(5, 1, 10, null)).toBe(6)
    expect(nextFrame(8, 4, 10, null)).toBe(9)
    expect(nextFrame(9, 1, 10, null)).toBeNull()
  })
  it('goes round inside a span', () => {
    expect(nextFrame(7, 1, 10, { first: 5, last: 7 })).toBe(5)
    expect(nextFrame(6, 3, 10, { first: 5, last: 7 })).toBe(6)
    expect(nextFrame(1, 1, 10, { first: 5, last: 7 })).toBe(5)
  })
})

describe('frames that pass while a value is held', () => {
  const passed = (frames: number[], loop: { first: number; last: number } | null = null) =>
    merged(frames.reduce((ranges, frame) => passedOn(ranges, frame, loop), passedOn([], frames[0] ?? 0, loop)))
  it('are all from the first to the last, those that fast playing leaves out too', () => {
    expect(passed([5, 6, 9])).toEqual([{ first: 5, last: 9 }])
  })
  it('may pass backwards under the hand', () => expect(passed([9, 7, 8])).toEqual([{ first: 7, last: 9 }]))
  it('go round a loop without the frames outside it or jumped over', () => {
    const loop = { first: 2, last: 12 }
    expect(passed([10, 12, 3], loop)).toEqual([{ first: 2, last: 3 }, { first: 10, last: 12 }])
    expect(passed([10, 12, 3, 9, 11], loop)).toEqual([{ first: 2, last: 12 }])
  })
})

describe('a typed time', () => {
  const times = [0, 0.04, 0.08, 1, 1.5, 1.54]
  const at = (seconds: number) => frameAtTime(seconds, Math.min(5, Math.round(seconds * 4)), 6, (frame) => Promise.resolve(times[frame] ?? 0))
  it('is the frame on the screen then, at any rate', async () => {
    expect(await at(0)).toBe(0)
    expect(await at(0.9)).toBe(2)
    expect(await at(1.2)).toBe(3)
    expect(await at(1.54)).toBe(5)
  })
  it('is none after the end', async () => expect(await at(60)).toBeNull())
})
