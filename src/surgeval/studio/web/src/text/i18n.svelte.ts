/** Texts in the language at hand; switching redraws them and nothing else. */

import { en, type Catalogue, type TextKey } from './en'
import { zh } from './zh'

const CATALOGUES: Record<string, Catalogue> = { en, zh }
export const LANGUAGES: Record<string, string> = { en: 'English', zh: '中文' }

class Language {
  code = $state(navigator.language.startsWith('zh') ? 'zh' : 'en')

  set(code: string): void {
    if (code in CATALOGUES) {
      this.code = code
      document.documentElement.lang = code
    }
  }
}

export const language = new Language()

/** A text with {names} filled in; {name|one|several} is the word that goes with that number. */
export function t(key: TextKey, parts: Record<string, string | number> = {}): string {
  const text = (CATALOGUES[language.code] ?? en)[key]
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (whole, name: string, one?: string, several?: string) => {
    if (!(name in parts)) return whole
    return one === undefined ? String(parts[name]) : ((Number(parts[name]) === 1 ? one : several) ?? '')
  })
}

export type { TextKey }
