/** The whole video, or the range that is marked in the span bar. */

import { draft } from './spans.svelte'

export type Extent = 'whole' | 'marked'

export function rangePayload(extent: Extent): { first?: number; last?: number } {
  return extent === 'marked' && draft.range ? { ...draft.range } : {}
}

/** What a dialog begins with: a marked range is meant. */
export function firstExtent(): Extent {
  return draft.range ? 'marked' : 'whole'
}
