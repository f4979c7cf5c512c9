/** The server, typed. Every error carries the server's one sentence. */

import type { ExportTold, ExportWanted, ImportTold, ImportWanted, Offer } from './lib/exchange'
import type { Filter } from './lib/filters'
import type { AgreementTable, Queue, QuestionItem, Role } from './lib/questions'
import type { CountedRule, Job, Mismatches, Proposer, TriedNumbers, TriedSchema } from './lib/answers'
import { Refused } from './lib/queue'
import type {
  AnnotationBlock, Changes, Flag, Found, FrameBlock, ImageRun, Match, Operation, Outcome, Presence, Problems, Project, Span, StudioEvent,
  TrackSummary,
} from './lib/types'
import type { Disagreement, DrawnSegment, Progress, Results, Reviews, Round, Study } from './lib/study'
import { t } from './text/i18n.svelte'

async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(path, { credentials: 'same-origin', ...init }).catch(() => {
    throw new Error(t('unreached')) // browsers say "Failed to fetch"
  })
  const body: unknown = await answer.json().catch(() => null)
  if (answer.ok) return body as T
  throw refusalOf(body, answer.status)
}

/** Of a body that may not be the studio's: a proxy between can answer too. */
function refusalOf(body: unknown, status: number): Refused {
  const { error, who, code, parts } = (body ?? {}) as Record<string, unknown>
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  const values = typeof parts === 'object' && parts ? (parts as Record<string, string | number>) : {}
  return new Refused(text(error) || `HTTP ${status}`, status, text(who), text(code), values)
}

/** With `last` a small request outlives its tab: the edit in flight arrives even if the tab is closed now. */
function post<T>(path: string, data: unknown, last = false): Promise<T> {
  const body = JSON.stringify(data)
  const keepalive = last && body.length < 20_000 // browsers allow 64 KB of bytes to outlive a page
  return ask<T>(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body, keepalive })
}

const query = (given: Record<string, string | number>): string =>
  new URLSearchParams(Object.entries(given).map(([name, value]) => [name, String(value)])).toString()
const of = (video: string): string => `api/videos/${encodeURIComponent(video)}`

const ofStudy = (study: string): string => `api/studies/${encodeURIComponent(study)}`

export const api = {
  project: (author: string) => ask<Project>(author ? `api/project?author=${encodeURIComponent(author)}` : 'api/project'),
  frames: (video: string, first: number, last: number) =>
    ask<FrameBlock>(`${of(video)}/frames?first=${first}&last=${last}`),
  annotations: (video: string, first: number, last: number) =>
    ask<AnnotationBlock>(`${of(video)}/annotations?first=${first}&last=${last}`),
  changes: (video: string, since: number) => ask<Changes>(`${of(video)}/changes?since=${since}`),
  spans: (video: string) => ask<Span[]>(`${of(video)}/spans`),
  tracks: (video: string) => ask<TrackSummary[]>(`${of(video)}/tracks`),
  flags: (video: string) => ask<Flag[]>(`${of(video)}/flags`),
  presence: (video: string) => ask<Presence[]>(`${of(video)}/presence`),
  imageRuns: (video: string) => ask<ImageRun[]>(`${of(video)}/image`),
  problems: (video: string) => ask<Problems>(`${of(video)}/problems`),
  search: (text: string) => ask<Found[]>(`api/search?text=${encodeURIComponent(text)}`),
  operation: (operation: Operation) => post<Outcome>('api/operations', operation, true),
  preview: (operation: Operation) => post<Outcome>('api/preview', operation),

  nextMatch: (video: string, { name, of: key }: Filter, after: number, by: { author: string; round: number }) =>
    ask<Match>(`${of(video)}/next?${query({ filter: name, class: key, after, ...by })}`),

  rounds: () => ask<Round[]>('api/rounds'),
  reviews: (video: string, round: number) => ask<Reviews>(`${of(video)}/reviews?round=${round}`),
  studies: () => ask<Study[]>('api/studies'),
  segments: (count: number, length: number, seed: number) =>
    ask<DrawnSegment[]>(`api/segments?count=${count}&length=${length}&seed=${seed}`),
  results: (study: string, after: boolean) => ask<Results>(`${ofStudy(study)}/results?after=${Number(after)}`),
  disagreements: (study: string, unanswered: boolean) =>
    ask<{ count: number; rows: Disagreement[] }>(`${ofStudy(study)}/disagreements?unanswered=${Number(unanswered)}`),
  progress: () => ask<Progress>('api/progress'),

  exports: () => ask<{ formats: string[]; exports: string[] }>('api/exports'),
  previewExport: (wanted: ExportWanted) => post<ExportTold>('api/export/preview', wanted),
  export: (name: string, wanted: ExportWanted) => post<ExportTold & { path: string }>('api/export', { ...wanted, name }),
  offers: () => ask<Offer[]>('api/imports'),
  upload: (file: File) =>
    ask<Offer>(`api/import/upload?name=${encodeURIComponent(file.name)}`, {
      method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: file,
    }),
  previewImport: (wanted: ImportWanted) => post<ImportTold>('api/import/preview', wanted),
  import: (wanted: ImportWanted & { id: string; session: string; author?: string }) => post<ImportTold>('api/import', wanted),

  questions: (author: string, role: Role, each: number) => ask<Queue>(`api/questions?${query({ author, role, each })}`),
  question: (author: string, role: Role, item: string) =>
    ask<QuestionItem>(`api/questions/item?${query({ author, role, item })}`),
  questionPicture: (item: string, number: number) => `questions/picture?${query({ item, number })}`,
  judge: (body: Record<string, unknown>) => post<{ id: string }>('api/questions/judge', body),
  agreement: (author: string) => ask<AgreementTable>(`api/questions/agreement?${query({ author })}`),

  schemas: () => ask<{ current: string; builtin: string[]; used: string[] }>('api/schemas'),
  trySchema: (schema: { builtin: string } | { used: string } | { name: string; source: string }) => post<TriedSchema>('api/schema/try', schema),
  mismatches: () => ask<Mismatches>('api/schema/mismatches'),
  tryMerging: (mapping: { name: string; source: string } | null) =>
    post<{ rules: CountedRule[] }>('api/merging/try', mapping ?? {}),
  tryNumbers: (rule: Record<string, unknown>) => post<TriedNumbers>('api/numbering/try', rule),
  number: (rule: Record<string, unknown>) => post<Outcome>('api/numbering', rule),
  proposers: () => ask<{ choices: Proposer[]; torch: boolean }>('api/proposing/choices'),
  proposing: () => ask<{ job: Job | null }>('api/proposing'),
  beginProposing: (job: Record<string, unknown>) => post<{ job: Job }>('api/proposing/begin', job),
  endProposing: (job: string) => post<{ job: Job | null }>('api/proposing/end', { job }),
}

/** Where an annotator answers without seeing labels. */
export function blindUrl(study: string, annotator: string, token = ''): string {
  const asked = token ? `?token=${encodeURIComponent(token)}` : ''
  return new URL(`blind/${encodeURIComponent(study)}/${encodeURIComponent(annotator)}/${asked}`, location.href).href
}

export function logUrl(study: string, as: 'csv' | 'json'): string {
  return `${ofStudy(study)}/log?as=${as}`
}

export function pictureUrl(video: string, frame: number): string {
  return `frames/${encodeURIComponent(video)}/${frame}`
}

/** Whether the server was started again, with another token than the one that this browser has. */
const needsToken = (): Promise<boolean> => fetch('.', { method: 'HEAD' }).then((answer) => answer.status === 401, () => false)

/** Tells of every stored edit, from any tab; the browser connects again by itself. */
export function listen(told: (event: StudioEvent) => void, connected: (state: 'well' | 'offline' | 'token') => void): () => void {
  let source: EventSource
  const connect = (): void => {
    source = new EventSource('api/events')
    source.onopen = () => connected('well')
    source.onerror = () => {
      connected('offline')
      if (source.readyState !== EventSource.CLOSED) return
      void needsToken().then((needed) => needed && connected('token')) // events do not tell the status
      setTimeout(connect, 2000) // an answer that was none: it gave up
    }
    source.onmessage = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as Partial<StudioEvent>
      if (typeof event.version === 'number') told(event as StudioEvent)
    }
  }
  connect()
  return () => source.close()
}
