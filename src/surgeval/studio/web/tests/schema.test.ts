import { describe, expect, it } from 'vitest'
import { choices, classes, imageChoices, inadmissible, missing, outsideLabelSpace } from '../src/lib/schema'
import type { Schema } from '../src/lib/types'

const schema: Schema = {
  name: 's',
  guidelines: {},
  panel: {
    tools: {
      scissors: { action: ['cut', 'retract', 'null'], target: ['prostate', 'null'], note: [] },
      aspirator: { action: ['suck', 'retract', 'null'], target: ['fluid', 'null'] },
    },
    targets: { DVC: { bleeding: ['yes', 'no'] } },
    image: { image: { phase: ['one', 'two'] } },
  },
  classes: [['scissors', 'cut', 'prostate'], ['scissors', 'null', 'null']],
}
const scissors = { group: 'tools', name: 'scissors' }
const aspirator = { group: 'tools', name: 'aspirator' }

describe('the schema', () => {
  it('lists what can be drawn, not the image', () => {
    expect(classes(schema).map((one) => one.name)).toEqual(['scissors', 'aspirator', 'DVC'])
    expect(imageChoices(schema)).toEqual([{ attribute: 'phase', values: ['one', 'two'] }])
  })
  it('offers what all selected classes admit', () => {
    expect(choices(schema, [scissors, aspirator])).toEqual([
      { attribute: 'action', values: ['retract', 'null'] },
      { attribute: 'target', values: ['null'] },
    ])
    expect(choices(schema, [scissors, scissors]).map((one) => one.attribute)).toEqual(['action', 'target', 'note'])
    expect(choices(schema, [])).toEqual([])
  })
  it('marks what is admitted but no class', () => {
    expect([...outsideLabelSpace(schema, scissors, { target: 'null' }, 'action')].sort()).toEqual(['cut', 'retract'])
    expect([...outsideLabelSpace(schema, scissors, {}, 'action')]).toEqual(['retract'])
    expect([...outsideLabelSpace({ ...schema, classes: [] }, scissors, {}, 'action')]).toEqual([])
  })
  it('names stored values that it lacks, and what is missing', () => {
    expect(inadmissible(schema, scissors, { action: 'suck', note: 'anything', colour: 'red' })).toEqual(['action', 'colour'])
    expect(inadmissible(schema, { group: 'tools', name: 'laser' }, { action: 'cut' })).toEqual(['action'])
    expect(missing(schema, scissors, { action: 'cut' })).toEqual(['target'])
  })
})
