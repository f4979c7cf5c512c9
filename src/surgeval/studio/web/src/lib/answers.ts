/** What the dialogs of the project ask the server for. */

import type { Schema, Track } from './types'

/** A stored class (no attribute) or value that a schema lacks. */
export interface Mismatch {
  group: string
  name: string
  attribute: string
  value: string
  count: number
  /** Empty where nothing comes close. */
  proposal: string
  /** Another way to write the same, not only spelled alike. */
  certain: boolean
  choices: string[]
}

export interface Mismatches {
  mismatches: Mismatch[]
  total: number
}

export interface TriedSchema extends Schema, Mismatches {
  source: string
  /** Whether it is the one in force. */
  current: boolean
}

export interface MergeRule {
  group: string
  name: string
  where: Record<string, string>
  attribute: string
  from: string[]
  to: string
}

export interface CountedRule extends MergeRule {
  merged: number
  before: number
  after: number
}

export interface TrackStatistics extends Track {
  first: number
  last: number
  frames: number
  seconds: number
  gaps: number
  longest_gap: number
  mean_box: [number, number, number, number]
}

export interface TriedNumbers {
  instances: number
  changed: number
  by_hand: number
  /** How many tracks there are, before and after. */
  tracks: [number, number]
  before: TrackStatistics[]
  after: TrackStatistics[]
}

export interface Proposer {
  kind: 'embedded' | 'started' | 'project' | 'predictions'
  name: string
}

export interface Job {
  id: string
  what: { name: string; source: string; video: string; first: number; last: number }
  standing: 'running' | 'done' | 'stopped' | 'failed'
  done: number
  total: number
  told: { found?: number; left?: number; why?: string }
  error: string
}

/** What a mismatch becomes as an edit: a class or a value replaced everywhere. */
export function replacement(row: Mismatch, to: string): Record<string, string> {
  const { group, name, attribute, value } = row
  return attribute ? { group, name, attribute, old: value, new: to } : { group, old: name, new: to }
}

export function mismatchKey(row: Mismatch): string {
  return [row.group, row.name, row.attribute, row.value].join('\n')
}

export function mismatchText(row: Mismatch): string {
  return row.attribute ? `${row.name}.${row.attribute}: ${row.value}` : `${row.group}.${row.name}`
}

/** The rule itself, as an edit names it. */
export function plainRule({ group, name, where, attribute, from, to }: MergeRule): MergeRule {
  return { group, name, where, attribute, from, to }
}
