/** What is said of imports and exports. */

export interface ExportWanted {
  format: string
  images: boolean
  proposals: boolean
  problem_frames: boolean
  /** null, the name of built-in rules, or what a mapping file holds. */
  rules: unknown
}

export interface ExportTold {
  format: string
  frames: number
  labelled: number
  instances: number
  losses: string[]
  refined: { group: string; name: string; values: Record<string, string>; before: number; after: number }[]
}

export interface Offer {
  path: string
  formats: string[]
}

export interface ImportWanted {
  path: string
  format: string
  replace: boolean
}

export interface ImportTold {
  format: string
  frames: number
  matched: number
  missed: number
  unmatched: string[]
  instances: number
  proposals: number
  present: number
  removed: number
  images: number
  flags: number
  scaled: number
  lacking: { group: string; name: string; attribute: string; value: string; count: number; proposal: string }[]
  problems: number
  examples: string[]
  losses: string[]
  versions: number[]
}

/** A name for an export that no other has: the format and, where it is taken, a number. */
export function freeName(format: string, taken: string[]): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? format : `${format}-${number}`
    if (!taken.includes(name)) return name
  }
}

/** What was found and nothing to say, or nothing and the sentence that says why. */
export function settled<T>(asked: Promise<T>): Promise<[T | null, string]> {
  return asked.then((found) => [found, ''], (error: Error) => [null, error.message])
}

/** Whether an import would change anything. */
export function changes(told: ImportTold): boolean {
  return told.instances + told.removed + told.images + told.flags > 0
}
