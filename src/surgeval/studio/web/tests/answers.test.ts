import { describe, expect, it } from 'vitest'
import { mismatchKey, mismatchText, plainRule, replacement, type Mismatch } from '../src/lib/answers'

const value: Mismatch = { group: 'tools', name: 'scissors', attribute: 'target', value: 'prostrate', count: 3, proposal: 'prostate', certain: false, choices: [] }
const kind: Mismatch = { ...value, name: 'driver', attribute: '', value: '' }

describe('what a schema lacks', () => {
  it('becomes a replaced value, or a replaced class where the class itself is unknown', () => {
    expect(replacement(value, 'prostate')).toEqual({ group: 'tools', name: 'scissors', attribute: 'target', old: 'prostrate', new: 'prostate' })
    expect(replacement(kind, 'needle driver')).toEqual({ group: 'tools', old: 'driver', new: 'needle driver' })
  })
  it('is named in words and told apart', () => {
    expect(mismatchText(value)).toBe('scissors.target: prostrate')
    expect(mismatchText(kind)).toBe('tools.driver')
    expect(mismatchKey(value)).not.toBe(mismatchKey({ ...value, value: 'bladder' }))
  })
})

describe('a counted rule', () => {
  it('is sent without its counts', () => {
    const rule = { group: 'tools', name: 'Endobag', where: {}, attribute: 'action', from: ['store'], to: 'bag' }
    expect(plainRule({ ...rule, merged: 1, before: 2, after: 3 } as typeof rule)).toEqual(rule)
  })
})
