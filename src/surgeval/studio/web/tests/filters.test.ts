import { describe, expect, it } from 'vitest'
import { FILTERS, passes, type FilterName } from '../src/lib/filters'
import type { Annotation, Schema } from '../src/lib/types'

const schema: Schema = {
  name: 's',
  panel: { tools: { hook: { action: ['cut', 'hold'], target: ['fat'], note: [] } } },
  guidelines: {},
}
const one = (more: Partial<Annotation>): Annotation => ({
  id: 'a', frame: 0, group: 'tools', name: 'hook', box: [0, 0, 9, 9], polygons: [], values: { action: 'cut', target: 'fat' },
  track: 1, track_by: null, source: '', score: null, proposal: false, review: 'seen', version: 1, ...more,
})

describe('filters', () => {
  const cases: Record<FilterName, Partial<Annotation>> = {
    All: {},
    Missing: { values: { action: 'cut' } },
    Outside: { values: { action: 'fly', target: 'fat' } },
    NoTrack: { track: null },
    Proposals: { proposal: true },
    Unreviewed: {},
  }
  it.each(FILTERS)('find what %s is after, and nothing that is well', (name) => {
    expect(passes({ name, of: '' }, schema, one(cases[name]), false)).toBe(true)
    expect(passes({ name, of: '' }, schema, one({}), true)).toBe(name === 'All')
  })
  it('also look at the class', () => {
    expect(passes({ name: 'All', of: 'tools.hook' }, schema, one({}), true)).toBe(true)
    expect(passes({ name: 'All', of: 'tools.grasper' }, schema, one({}), true)).toBe(false)
    expect(passes({ name: 'Missing', of: 'tools.grasper' }, schema, one({ values: {} }), true)).toBe(false)
  })
  it('take a class that the schema lacks for outside', () => {
    expect(passes({ name: 'Outside', of: '' }, schema, one({ name: 'laser' }), true)).toBe(true)
  })
})
