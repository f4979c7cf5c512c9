import { describe, expect, it } from 'vitest'
import { draggedTo, drawnBox, underHand, type Drag } from '../src/lib/drag'
import type { Annotation, Point } from '../src/lib/types'

const picture = { width: 640, height: 360 }
const triangle: Point[] = [[100, 100], [140, 100], [120, 150]]

function shape(id: string, polygons: Point[][] = []): Annotation {
  return {
    id, frame: 0, group: 'instrument', name: 'grasper', box: [100, 100, 40, 50], polygons, values: {}, track: 1,
    track_by: 'rule', source: 'hand', score: null, proposal: false, review: '', version: 0,
  }
}

function moving(...of: Annotation[]): Drag {
  return { kind: 'move', of, from: [110, 110], dx: 0, dy: 0, far: false }
}

describe('a moved shape', () => {
  it('stays where it is while the hand only trembles on the screen', () => {
    const one = shape('a')
    expect(underHand(draggedTo(moving(one), [112, 110], picture, 1), one)).toBe(one)
    expect(underHand(draggedTo(moving(one), [112, 110], picture, 4), one).box).toEqual([102, 100, 40, 50])
  })
  it('comes back under the hand once it was taken', () => {
    const far = draggedTo(moving(shape('a')), [300, 110], picture, 1)
    expect(draggedTo(far, [111, 110], picture, 1)).toMatchObject({ far: true, dx: 1, dy: 0 })
  })
  it('takes its polygons along, and others stay', () => {
    const [one, other] = [shape('a', [triangle]), shape('b')]
    const drag = draggedTo(moving(one), [130, 105], picture, 1)
    expect(underHand(drag, one).polygons).toEqual([[[120, 95], [160, 95], [140, 145]]])
    expect(underHand(drag, other)).toBe(other)
  })
  it('stays in the picture, all of them by the same shift', () => {
    const [one, right] = [shape('a'), { ...shape('b'), box: [590, 100, 40, 50] as Annotation['box'] }]
    expect(draggedTo(moving(one, right), [510, 110], picture, 1)).toMatchObject({ dx: 10, dy: 0 })
  })
})

describe('a corner', () => {
  it('of a box stretches its polygons with it and ends at the edge', () => {
    const one = shape('a', [triangle])
    const drag = draggedTo({ kind: 'resize', of: one, handle: 'se', from: [140, 150], box: one.box }, [180, 900], picture, 1)
    const drawn = underHand(drag, one)
    expect(drawn.box).toEqual([100, 100, 80, 260])
    expect(drawn.polygons).toEqual([[[100, 100], [180, 100], [140, 360]]])
  })
  it('of a polygon goes alone and stays in the picture', () => {
    const one = shape('a', [triangle])
    const held: Drag = { kind: 'vertex', of: one, polygons: one.polygons, polygon: 0, vertex: 2 }
    expect(underHand(draggedTo(held, [-5, 200], picture, 1), one).polygons).toEqual([[[100, 100], [140, 100], [0, 200]]])
  })
})

describe('a box that is drawn', () => {
  it('is the same from any corner, inside the picture', () => {
    const drag = draggedTo({ kind: 'draw', from: [600, 300], to: [600, 300] }, [700, 250], picture, 1)
    expect(drag.kind === 'draw' && drawnBox(drag, picture)).toEqual([600, 250, 40, 50])
  })
})
