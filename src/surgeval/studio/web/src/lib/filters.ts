/** Which instances are looked for; the server knows the same names. */

import { classKey, inadmissible, missing } from './schema'
import type { Annotation, Schema } from './types'

export const FILTERS = ['All', 'Missing', 'Outside', 'NoTrack', 'Proposals', 'Unreviewed'] as const
export type FilterName = (typeof FILTERS)[number]

export interface Filter {
  name: FilterName
  /** Key of a class; empty: of any. */
  of: string
}

export const NO_FILTER: Filter = { name: 'All', of: '' }

/** Whether a filter leaves anything out. */
export function filters({ name, of }: Filter): boolean {
  return name !== 'All' || of !== ''
}

/** Whether an instance is looked for; `seen`: whether its frame was marked in this round by who asks. */
export function passes({ name, of }: Filter, schema: Schema, one: Annotation, seen: boolean): boolean {
  if (of && classKey(one) !== of) return false
  if (name === 'Missing') return missing(schema, one, one.values).length > 0
  if (name === 'Outside') return inadmissible(schema, one, one.values).length > 0
  if (name === 'NoTrack') return one.track === null
  if (name === 'Proposals') return one.proposal
  if (name === 'Unreviewed') return !seen
  return true
}
