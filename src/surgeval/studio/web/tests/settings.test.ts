import { describe, expect, it } from 'vitest'
import { colourOf, contrast, inkOn, PALETTE } from '../src/lib/palette'
import { DEFAULTS, parseSettingsFile, readSettings, settingsFile } from '../src/lib/settings'

describe('settings', () => {
  it('go through a file and come back', () => {
    const mine = { ...DEFAULTS, boxOpacity: 0.5, colours: { 'tools.scissors': '#123456' }, language: 'zh', theme: 'light' as const, hidden: ['tools.grasper'], showLabels: false }
    expect(parseSettingsFile(settingsFile(mine))).toEqual(mine)
  })
  it('are read field by field from a hostile file', () => {
    const read = readSettings({
      lineWidth: 9999, fontSize: 'x', boxOpacity: Number.NaN, colours: { a: 'url(x)', b: '#ABCDEF' }, language: '<b>', other: 1,
      theme: 'x', hidden: ['a', 3, null], showBoxes: 'no',
    })
    expect(read).toEqual({ ...DEFAULTS, lineWidth: 8, colours: { b: '#ABCDEF' }, hidden: ['a'] })
  })
  it.each(['', 'null', '[]', '{}', '{"format":"other"}', 'no JSON'])('refuses %s', (text) => {
    expect(parseSettingsFile(text)).toBeNull()
  })
})

describe('colours', () => {
  it('read well: on the dark ground, and with their ink', () => {
    for (const colour of PALETTE) {
      expect(contrast(colour, '#171b21')).toBeGreaterThan(4.5)
      expect(contrast(colour, inkOn(colour))).toBeGreaterThan(4.5)
    }
  })
  it('follow the schema and the person', () => {
    expect(colourOf('b', ['a', 'b'], {})).toBe(PALETTE[1])
    expect(colourOf('b', ['a', 'b'], { b: '#000000' })).toBe('#000000')
    expect(PALETTE).toContain(colourOf('unknown', [], {}))
  })
})
