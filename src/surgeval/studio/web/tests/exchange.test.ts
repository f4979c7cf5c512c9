import { describe, expect, it } from 'vitest'
import { changes, freeName, type ImportTold } from '../src/lib/exchange'

const NOTHING: ImportTold = {
  format: 'coco', frames: 3, matched: 3, missed: 0, unmatched: [], instances: 0, proposals: 0, present: 7, removed: 0,
  images: 0, flags: 0, scaled: 0, lacking: [], problems: 0, examples: [], losses: [], versions: [],
}

describe('names of exports', () => {
  it('are the format, and a number where that is taken', () => {
    expect(freeName('coco', [])).toBe('coco')
    expect(freeName('coco', ['coco', 'labelme', 'coco-2'])).toBe('coco-3')
  })
})

describe('an import', () => {
  it('changes nothing where everything is there already', () => {
    expect(changes(NOTHING)).toBe(false)
    expect(changes({ ...NOTHING, flags: 1 })).toBe(true)
  })
})
