import { describe, expect, it } from 'vitest'
import css from '../src/app.css?raw'
import { contrast, PALETTE } from '../src/lib/palette'

function variables(selector: string): Record<string, string> {
  const block = css.split(`${selector} {`)[1]?.split('}')[0] ?? ''
  return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map((found) => [found[1], found[2]]))
}

const dark = variables(':root')
const themes = { dark, light: { ...dark, ...variables(":root[data-theme='light']") } }

/** What is written on what; WCAG AA asks for 4.5. */
const GROUNDS = ['ground', 'panel', 'raised', 'inset', 'draft', 'chosen', 'hover']
const PAIRS: [string, string][] = [
  ...GROUNDS.flatMap((ground): [string, string][] => [['text', ground], ['muted', ground]]),
  ...['accent', 'warn', 'bad', 'good'].flatMap((ink): [string, string][] => [[ink, 'panel'], [ink, 'raised'], [ink, 'draft'], [ink, 'inset']]),
  ['faint', 'raised'], ['faint', 'panel'], ['ink', 'accent'], ['text', 'main'], ['text', 'alarm'], ['text', 'refused'], ['text', 'waiting'],
  ['text', 'lane'], ['muted', 'lane'], ['on-stage', 'stage'],
]

describe.each(Object.entries(themes))('the %s theme', (_name, colours) => {
  it.each(PAIRS)('writes %s on %s with enough contrast', (ink, ground) => {
    expect(contrast(colours[ink] ?? '', colours[ground] ?? '')).toBeGreaterThanOrEqual(4.5)
  })
  it('marks what is in focus', () => {
    for (const ground of ['panel', 'raised', 'ground']) {
      expect(contrast(colours.accent ?? '', colours[ground] ?? '')).toBeGreaterThanOrEqual(3)
    }
  })
})

/** Colours as people without one kind of cone see them (Viénot, Brettel and Mollon 1999), in CIE Lab. */
const SEEN = {
  everybody: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopes: [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
  deuteranopes: [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}

function lab(colour: string, eye: number[][]): [number, number, number] {
  const linear = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  const times = (matrix: number[][], by: number[]): number[] =>
    matrix.map((row) => row.reduce((total, part, at) => total + part * (by[at] ?? 0), 0))
  const seen = times(eye, linear)
  const xyz = times([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], seen)
  const [x, y, z] = xyz.map((value, at) => Math.cbrt(Math.max(value, 0) / ([0.9505, 1, 1.089][at] ?? 1))) as [number, number, number]
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

describe.each(Object.entries(SEEN))('the colours of classes, as %s see them', (_who, eye) => {
  it.each([[7, 30], [10, 17]])('differ among the first %i', (count, least) => {
    const points = PALETTE.slice(0, count).map((colour) => lab(colour, eye))
    let nearest = Infinity
    points.forEach((one, at) => points.slice(at + 1).forEach((other) => {
      nearest = Math.min(nearest, Math.hypot(...one.map((part, axis) => part - (other[axis] ?? 0))))
    }))
    expect(nearest).toBeGreaterThan(least)
  })
})
