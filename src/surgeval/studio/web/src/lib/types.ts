/** What the server sends: plain JSON, mirrored here field by field. */

import type { Blind } from './study'

export type Point = [number, number]
export type Box = [number, number, number, number]
export type Values = Record<string, string>
export type Panel = Record<string, Record<string, Record<string, string[]>>>

export interface Video {
  id: string
  name: string
  width: number
  height: number
  /** Frames a second; 1 where nobody knows. */
  fps: number
  frames: number
}

export interface Schema {
  name: string
  panel: Panel
  guidelines: Record<string, string>
  /** Addresses of the pictures beside them. */
  pictures?: Record<string, string>
  /** Triplets that are classes of the label space; absent where the schema has none. */
  classes?: [string, string, string][]
}

export interface Project {
  name: string
  author: string
  /** Several people use this server: each says who he or she is. */
  /** Why films of the folder are not shown. */
  skipped?: string[]
  shared?: boolean
  version: number
  schema: Schema
  videos: Video[]
  keys: Record<string, string>
  settings: Record<string, unknown>
  languages: string[]
  /** How many questions there are to review. */
  questions: number
  /** Present in the session of an annotator who sees boxes and no labels. */
  blind?: Blind
}

export interface FrameBlock {
  first: number
  names: string[]
  times: (number | null)[]
  values: Record<string, Values>
}

export interface Annotation {
  id: string
  frame: number
  group: string
  name: string
  box: Box
  polygons: Point[][]
  values: Values
  track: number | null
  track_by: string | null
  source: string
  score: number | null
  proposal: boolean
  review: string
  version: number
  /** The class by which its identity goes, where that is not the one it is said to have. */
  lane?: string
}

export interface AnnotationBlock {
  version: number
  annotations: Annotation[]
}

export interface Changes extends AnnotationBlock {
  gone: string[]
  /** More changed than is told here. */
  more: boolean
  spans_changed: boolean
}

export interface Track {
  group: string
  name: string
  number: number | null
}

export interface Span {
  id: string
  tracks: Track[]
  values: Record<string, string | null>
  first: number
  last: number
  author: string
  time: number
  source: string
  overridden_by: string[]
  version: number
}

/** Frames whose image has the same values. */
export interface ImageRun {
  first: number
  last: number
  values: Values
}

export interface TrackSummary extends Track {
  count: number
  first: number
  last: number
  missing: number
}

export interface Presence extends Track {
  runs: [number, number][]
}

export interface Flag {
  frame: number
  name: string
  reason: string
  note: string
  author: string
}

export interface Problem {
  frame: number
  /** The last frame of the stretch that it is about. */
  last: number
  instance: string | null
  rule: string
  text: string
}

/** The first of each rule's, and how many there are. */
export interface Problems {
  problems: Problem[]
  counts: Record<string, number>
}

export interface Outcome {
  version: number
  kind: string
  changed: number
  skipped: number
  absent: number
  created: string[]
  repeated: boolean
}

export interface StudioEvent {
  version: number
  author: string
  session: string
  kind?: string
  video: string | null
  /** Rows that it changed. */
  changed?: number
}

export interface Operation {
  id: string
  kind: string
  payload: Record<string, unknown>
  base: number
  session: string
  author?: string
}

export interface Found {
  video: string
  frame: number
  name: string
}

/** The next instance that a filter finds; null: there is none. */
export interface Match {
  frame: number | null
  instance: string | null
}

export const IMAGE = 'image'

/** One text per identity, also of instances without a number. */
export function trackKey(track: Track): string {
  return `${track.group}/${track.name}/${track.number ?? '-'}`
}

export function trackOf(one: Annotation): Track {
  return { group: one.group, name: one.lane ?? one.name, number: one.track }
}
