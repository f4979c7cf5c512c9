/** Which lists an edit may have changed: asking for all of them after every edit would be slow on long videos. */

export type List = 'spans' | 'image' | 'presence' | 'flags' | 'reviews' | 'studies'
export const LISTS: readonly List[] = ['spans', 'image', 'presence', 'flags', 'reviews', 'studies']

/** Edits that change neither where things are in time nor any span. */
const LOCAL = /^(instances\.(move|reshape|values|mark)|setting\.set)$/

export function listsOf(kind: string): List[] {
  if (LOCAL.test(kind)) return []
  if (kind === 'image.values') return ['image']
  if (kind === 'frames.mark' || kind.startsWith('round.')) return ['reviews']
  if (kind === 'study.decide') return ['presence', 'studies']
  if (kind.startsWith('study.')) return ['studies']
  if (kind.startsWith('frames.')) return ['flags']
  if (kind.startsWith('span.')) return ['spans', 'image']
  if (/^(instances|boxes|proposals)\./.test(kind)) return ['presence']
  if (kind.startsWith('track.')) return ['presence', 'spans']
  return [...LISTS] // undo, redo, the project's own, and whatever comes to be
}

/** Whether values of whole frames may have changed. */
export function touchesFrames(kind: string): boolean {
  return /^(image\.|span\.|undo$|redo$|project\.|schema\.|$)/.test(kind)
}

/** Whether the schema or the list of videos may have changed. */
export function touchesProject(kind: string): boolean {
  return /^(undo$|redo$|schema\.|video\.|frames\.add$|$)/.test(kind)
}
