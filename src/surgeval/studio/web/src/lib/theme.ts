/** Dark or light. The colours stand in app.css; what is painted by hand asks for them here. */

export const THEMES = ['dark', 'light'] as const
export type Theme = (typeof THEMES)[number]

const TONES = ['lane', 'faint', 'muted', 'chosen', 'panel', 'text', 'needle', 'edge', 'bad', 'good', 'warn', 'accent'] as const
export type Tones = Record<(typeof TONES)[number], string>

/** The theme's colours, with the page set to it. */
export function themeTones(theme: Theme): Tones {
  showTheme(theme)
  const style = getComputedStyle(document.documentElement)
  return Object.fromEntries(TONES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Tones
}

export function showTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme
}
