/** How things look: one flat record, shared between people as a file; a file is read field by field, never trusted. */

import { THEMES, type Theme } from './theme'

export interface Settings {
  colours: Record<string, string>
  boxOpacity: number
  fillOpacity: number
  labelOpacity: number
  /** How far a label fades that covers a tip, a box or another label. */
  fade: number
  highlight: number
  lineWidth: number
  fontSize: number
  fontWeight: number
  brightness: number
  contrast: number
  threshold: number
  language: string
  theme: Theme
  showBoxes: boolean
  showLabels: boolean
  /** Keys of classes that are not drawn. */
  hidden: string[]
}

export const DEFAULTS: Settings = {
  colours: {},
  boxOpacity: 0.95,
  fillOpacity: 0.08,
  labelOpacity: 0.9,
  fade: 0.6,
  highlight: 0.25,
  lineWidth: 2,
  fontSize: 12,
  fontWeight: 500,
  brightness: 1,
  contrast: 1,
  threshold: 0,
  language: '',
  theme: 'dark',
  showBoxes: true,
  showLabels: true,
  hidden: [],
}

/** Sliders: lowest, highest, step. */
export const LIMITS = {
  boxOpacity: [0.05, 1, 0.05],
  fillOpacity: [0, 0.6, 0.02],
  labelOpacity: [0, 1, 0.05],
  fade: [0, 0.9, 0.05],
  highlight: [0, 0.8, 0.05],
  lineWidth: [0.5, 8, 0.5],
  fontSize: [8, 32, 1],
  fontWeight: [300, 900, 100],
  brightness: [0.3, 3, 0.05],
  contrast: [0.3, 3, 0.05],
  threshold: [0, 1, 0.01],
} as const satisfies Partial<Record<keyof Settings, readonly [number, number, number]>>

const MOST = 500 // classes with settings of their own

export type Slider = keyof typeof LIMITS
export const FORMAT = 'surgeval studio display settings'

/** Known fields in their limits; anything else keeps its usual value. */
export function readSettings(data: unknown): Settings {
  const given = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
  const result: Settings = { ...DEFAULTS, colours: {}, hidden: [] }
  for (const name of Object.keys(LIMITS) as Slider[]) {
    const value = given[name]
    const [low, high] = LIMITS[name]
    if (typeof value === 'number' && Number.isFinite(value)) result[name] = Math.min(high, Math.max(low, value))
  }
  if (typeof given.language === 'string' && /^[a-z]{2}$/.test(given.language)) result.language = given.language
  for (const name of ['showBoxes', 'showLabels'] as const) {
    const value = given[name]
    if (typeof value === 'boolean') result[name] = value
  }
  if (Array.isArray(given.hidden)) {
    result.hidden = given.hidden.filter((key): key is string => typeof key === 'string').slice(0, MOST)
  }
  result.theme = THEMES.find((theme) => theme === given.theme) ?? DEFAULTS.theme
  if (typeof given.colours === 'object' && given.colours !== null) {
    for (const [key, colour] of Object.entries(given.colours).slice(0, MOST)) {
      if (typeof colour === 'string' && /^#[0-9a-f]{6}$/i.test(colour)) result.colours[key] = colour
    }
  }
  return result
}

/** The file a team shares. */
export function settingsFile(settings: Settings): string {
  return JSON.stringify({ format: FORMAT, settings }, null, 2)
}

/** Null where the text is no such file. */
export function parseSettingsFile(text: string): Settings | null {
  try {
    const data: unknown = JSON.parse(text)
    if (typeof data !== 'object' || data === null || (data as { format?: unknown }).format !== FORMAT) return null
    return readSettings((data as { settings?: unknown }).settings)
  } catch {
    return null
  }
}
