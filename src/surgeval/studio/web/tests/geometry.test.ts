import { describe, expect, it } from 'vitest'
import {
  boundsOf, clipped, fit, handlePoint, keptInside, likelyTip, middles, overlap, pointInside, resized, rounded, stretched, toPicture,
  toScreen, vertexInserted, vertexMoved, vertexRemoved, zoomAt,
} from '../src/lib/geometry'
import type { Box, Point } from '../src/lib/types'

const picture = { width: 200, height: 100 }
const triangle: Point[] = [[0, 0], [10, 0], [0, 10]]

describe('view', () => {
  it('fits the whole picture into the middle', () => {
    const view = fit(picture, { width: 416, height: 516 })
    expect(view).toEqual({ scale: 2, x: 8, y: 158 })
  })
  it('keeps the point under the cursor when zooming', () => {
    const view = { scale: 1.5, x: 12, y: -7 }
    const before = toPicture(view, [100, 60])
    const after = toPicture(zoomAt(view, [100, 60], 3), [100, 60])
    expect(after[0]).toBeCloseTo(before[0])
    expect(after[1]).toBeCloseTo(before[1])
  })
  it('stops zooming at its limits with the point still in place', () => {
    const view = zoomAt({ scale: 30, x: 0, y: 0 }, [50, 50], 100)
    expect(view.scale).toBe(40)
    expect(toScreen(view, toPicture({ scale: 30, x: 0, y: 0 }, [50, 50]))[0]).toBeCloseTo(50)
  })
})

describe('boxes', () => {
  it.each([
    ['se', 5, 7, [10, 20, 35, 47]],
    ['nw', 5, 7, [15, 27, 25, 33]],
    ['e', -50, 99, [-10, 20, 20, 40]],
    ['n', 3, 60, [10, 60, 30, 20]],
  ] as const)('resize by %s', (handle, dx, dy, expected) => {
    expect(resized([10, 20, 30, 40], handle, dx, dy)).toEqual(expected)
  })
  it('are cut at the border but never to nothing', () => {
    expect(clipped([-10, 90, 30, 30], picture)).toEqual([0, 90, 20, 10])
    expect(clipped([300, 10, 5, 5], picture)).toEqual([300, 10, 5, 5])
  })
  it('stay inside while they are moved', () => {
    expect(keptInside([10, 10, 20, 20], -50, 500, picture)).toEqual([-10, 70])
    expect(keptInside([-5, 0, 300, 20], 40, 0, picture)).toEqual([40, 0])
  })
  it('have handles at their corners and sides', () => {
    expect(handlePoint([0, 0, 10, 20], 'e')).toEqual([10, 10])
    expect(handlePoint([0, 0, 10, 20], 'nw')).toEqual([0, 0])
  })
  it('overlap by an area', () => {
    expect(overlap([0, 0, 10, 10], [5, 5, 10, 10])).toBe(25)
    expect(overlap([0, 0, 10, 10], [10, 0, 5, 5])).toBe(0)
  })
  it('have their tip towards the middle', () => {
    expect(likelyTip([0, 60, 20, 30], [], picture)).toEqual([20, 60])
    expect(likelyTip([0, 60, 20, 30], [[[0, 90], [5, 62], [18, 70]], [[2, 80], [3, 88], [1, 85]]], picture)).toEqual([18, 70])
  })
  it('are sent with tenths of pixels', () => {
    expect(rounded([1.04, 2.06, 3, 4] as Box)).toEqual([1, 2.1, 3, 4])
  })
})

describe('polygons', () => {
  it('move, gain and lose vertices', () => {
    expect(vertexMoved([triangle], 0, 1, [9, 9])[0]?.[1]).toEqual([9, 9])
    const four = vertexInserted([triangle], 0, 2, [0, 5])
    expect(four[0]).toHaveLength(4)
    expect(four[0]?.[3]).toEqual([0, 5])
    expect(vertexRemoved(four, 0, 0)[0]).toEqual([[10, 0], [0, 10], [0, 5]])
  })
  it('never fall below a triangle', () => {
    expect(vertexRemoved([triangle], 0, 0)).toEqual([triangle])
  })
  it('keep their corners inside the picture', () => {
    expect(pointInside([-3, 120], picture)).toEqual([0, 100])
    expect(pointInside([7, 8], picture)).toEqual([7, 8])
  })
  it('have a middle per side, the last one closing', () => {
    expect(middles(triangle)).toEqual([[5, 0], [5, 5], [0, 5]])
  })
  it('stretch with their box', () => {
    const box = boundsOf([triangle])
    expect(box).toEqual([0, 0, 10, 10])
    expect(stretched([triangle], box, [10, 0, 20, 5])[0]).toEqual([[10, 0], [30, 0], [10, 5]])
  })
})
