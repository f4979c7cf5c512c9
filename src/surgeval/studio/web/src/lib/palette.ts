/**
 * Colours that people with any common colour vision tell apart (begun from Okabe and Ito's, moved apart by search: at
 * least 17 in CIE Lab, 30 among the first seven), light enough for dark rooms and unlike tissue.
 */

export const PALETTE: readonly string[] = [
  '#56b4e9', '#ffda8b', '#09ffe2', '#e8e513', '#ef4279', '#dc6010', '#4383fc', '#a5b9d1', '#bee557', '#7b83b0',
]

/** Of a thing whose class nobody has said yet. */
const NOT_SAID = '#c9c9c9'

/** The colour of a class: the person's own, or by its place in the schema, so that it never changes by itself. */
export function colourOf(key: string, order: readonly string[], own: Record<string, string>): string {
  if (key.endsWith('.')) return NOT_SAID
  const chosen = own[key]
  if (chosen) return chosen
  const place = order.indexOf(key)
  return PALETTE[(place < 0 ? hash(key) : place) % PALETTE.length] as string
}

function hash(text: string): number {
  let value = 7
  for (const char of text) value = (value * 31 + (char.codePointAt(0) ?? 0)) >>> 0
  return value
}

/** Black or white, whichever reads better on a colour. */
export function inkOn(colour: string): string {
  return contrast(colour, '#000000') >= contrast(colour, '#ffffff') ? '#000000' : '#ffffff'
}

/** WCAG contrast of two colours #rrggbb. */
export function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

function luminance(colour: string): number {
  const part = (at: number): number => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}
