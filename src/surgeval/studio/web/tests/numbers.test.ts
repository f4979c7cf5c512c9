import { describe, expect, it } from 'vitest'
import { numberFor } from '../src/lib/numbers'
import type { Annotation, Box } from '../src/lib/types'

const grasper = { group: 'tools', name: 'grasper' }
const at = (frame: number, track: number | null, box: Box, name = 'grasper'): Annotation => ({
  id: `${name}${track}@${frame}`, frame, group: 'tools', name, box, polygons: [], values: {}, track, track_by: 'rule',
  source: 'hand', score: null, proposal: false, review: '', version: 1,
})
const box: Box = [100, 100, 40, 30]

describe('the number of a drawn box', () => {
  it('is that of the same class close by, the nearest frame first', () => {
    expect(numberFor(grasper, box, [], [[at(11, 4, [110, 105, 40, 30])], [at(13, 2, box)]], [2, 4])).toBe(4)
  })
  it('is the one that overlaps more, of two in a frame', () => {
    expect(numberFor(grasper, box, [], [[at(11, 1, [135, 100, 40, 30]), at(11, 2, [104, 100, 40, 30])]], [1, 2])).toBe(2)
  })
  it('is no number that another instrument of the video has', () => {
    expect(numberFor(grasper, box, [], [[at(11, 1, [400, 300, 40, 30])]], [1, 2, 3])).toBe(4)
    expect(numberFor(grasper, box, [], [], [1])).toBe(2)
    expect(numberFor(grasper, box, [], [], [])).toBe(1)
  })
  it('is not taken from another class, from a box without number, or twice in a frame', () => {
    expect(numberFor(grasper, box, [], [[at(11, 5, box, 'hook'), at(11, null, box)]], [])).toBe(1)
    expect(numberFor(grasper, box, [at(12, 1, [300, 10, 9, 9])], [[at(11, 1, box)]], [1])).toBe(2)
  })
})
