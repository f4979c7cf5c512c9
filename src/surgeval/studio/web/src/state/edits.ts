/** Edits of what is in a frame: shown at once, then sent. */

import { api } from '../api'
import { filters, passes } from '../lib/filters'
import { around, boundsOf, keptInside, moved, movedPolygons, rounded } from '../lib/geometry'
import { NEAR, numberFor } from '../lib/numbers'
import type { ClassName } from '../lib/schema'
import type { Range } from '../lib/spans'
import { seenBy } from '../lib/study'
import { trackKey, trackOf, type Annotation, type Box, type Point, type Track, type Values } from '../lib/types'
import { t } from '../text/i18n.svelte'
import { answer } from './answers'
import { messages } from './messages.svelte'
import { review } from './review.svelte'
import { selection } from './selection.svelte'
import { settings } from './settings.svelte'
import { studio } from './studio.svelte'
import { ui } from './ui.svelte'

type Verdict = 'accept' | 'reject'
/** Frames whose instances are asked for at once. */
const AT_ONCE = 5000

/** Pixels by which a copy lies beside its original: away from the frame's edge where that is near. */
const COPY_SHIFT = 12
/** What was corrected by hand is no proposal any more; the server says the same. */
const CORRECTED = { proposal: false }

function show(annotations: Annotation[]): void {
  for (const one of annotations) studio.blocks?.put(one)
  studio.blocks?.touched()
}

/** A new thing, selected at once so that digits label it. */
export function addShape(of: ClassName, shape: { box?: Box; polygons?: Point[][] }): void {
  const video = studio.video
  if (!video) return
  const polygons = (shape.polygons ?? []).map((polygon) => polygon.map((point) => rounded(point)))
  const box = rounded(polygons.length ? boundsOf(polygons) : (shape.box as Box))
  const one: Annotation = {
    id: studio.queue.newId(), frame: studio.shown, group: of.group, name: of.name, box, polygons, values: {},
    track: numberOf(of, box), track_by: 'rule', source: 'hand', score: null, proposal: false, review: '', version: 0,
  }
  show([one])
  selection.only(one)
  const { id, frame, group, name, track } = one
  const geometry = polygons.length ? { polygons } : { box }
  void studio.edit('instances.add', { instances: [{ id, video: video.id, frame, group, name, track, track_by: 'rule', ...geometry }] })
}

/** The number of a box that is drawn in this frame, by what is known of the frames around it and of all tracks. */
function numberOf(of: ClassName, box: Box): number {
  const at = studio.shown
  const near = Array.from({ length: NEAR }, (_, place) => place + 1).flatMap((by) => [studio.annotations(at - by), studio.annotations(at + by)])
  const tracks: Track[] = [...studio.presence, ...studio.spans.flatMap((span) => span.tracks), ...(studio.blocks?.tracks() ?? [])]
  const used = tracks.flatMap((one) => (one.group === of.group && one.name === of.name && one.number !== null ? [one.number] : []))
  return numberFor(of, box, studio.annotations(at), near, used)
}

export function moveBy(annotations: Annotation[], dx: number, dy: number): void {
  if (!annotations.length || !studio.video) return
  const [sx, sy] = rounded(keptInside(around(annotations), dx, dy, studio.video))
  if (!sx && !sy) return
  show(annotations.map((one) => ({ ...one, box: moved(one.box, sx, sy), polygons: movedPolygons(one.polygons, sx, sy), ...CORRECTED })))
  void studio.edit('instances.move', { ids: annotations.map((one) => one.id), dx: sx, dy: sy })
}

export function reshape(one: Annotation, shape: { box?: Box; polygons?: Point[][] }): void {
  const polygons = shape.polygons?.map((polygon) => polygon.map((point) => rounded(point)))
  const box = rounded(polygons?.length ? boundsOf(polygons) : (shape.box as Box))
  show([{ ...one, box, polygons: polygons ?? [], ...CORRECTED }])
  void studio.edit('instances.reshape', { shapes: [{ id: one.id, ...(polygons?.length ? { polygons } : { box }) }] })
}

export function remove(annotations: Annotation[]): void {
  if (!annotations.length) return
  for (const one of annotations) studio.blocks?.take(one.id)
  studio.blocks?.touched()
  void studio.edit('instances.delete', { ids: annotations.map((one) => one.id) })
}

export async function duplicate(annotations: Annotation[]): Promise<void> {
  if (!annotations.length || !studio.video) return
  const copies = annotations.map((one) => ({ of: one.id, id: studio.queue.newId() }))
  const [right, down] = keptInside(around(annotations), COPY_SHIFT, COPY_SHIFT, studio.video)
  const [dx, dy] = rounded<Point>([right || -COPY_SHIFT, down || -COPY_SHIFT])
  show(annotations.map((one, place) => ({
    ...one, id: copies[place]?.id ?? '', track: null, track_by: null, box: moved(one.box, dx, dy),
    polygons: movedPolygons(one.polygons, dx, dy), proposal: false, score: null,
  })))
  selection.only(...copies.flatMap(({ id }) => studio.blocks?.find(id) ?? []))
  await studio.edit('instances.duplicate', { copies, dx, dy })
}

/** The previous frame's boxes that are missing here, with their numbers and values, as one edit. */
export async function copyPrevious(): Promise<void> {
  const video = studio.video
  const frame = studio.shown
  if (!video || frame < 1) return
  await studio.blocks?.load(frame - 1)
  if (studio.video?.id !== video.id) return
  const here = new Set(studio.annotations(frame).map((one) => trackKey(trackOf(one))))
  const missing = studio.annotations(frame - 1).filter((one) => one.track === null || !here.has(trackKey(trackOf(one))))
  if (!missing.length) return messages.info(t('copiedNone'))
  const copies = missing.map((one) => ({ ...one, id: studio.queue.newId(), frame, proposal: false, score: null, source: 'copied' }))
  show(copies)
  const instances = copies.map(({ id, group, name, box, polygons, values, track }) => ({
    id, video: video.id, frame, group, name, values, track, source: 'copied',
    ...(polygons.length ? { polygons } : { box }),
  }))
  void studio.edit('instances.add', { instances })
}

export function setValues(annotations: Annotation[], values: Record<string, string | null>): void {
  if (!annotations.length) return
  show(annotations.map((one) => ({ ...one, values: withValues(one.values, values), ...CORRECTED })))
  if (studio.blind) answer(annotations, { values })
  else void studio.edit('instances.values', { ids: annotations.map((one) => one.id), values })
}

export function classify(annotations: Annotation[], of: ClassName): void {
  const others = annotations.filter((one) => one.group !== of.group || one.name !== of.name)
  if (!others.length) return
  show(others.map((one) => ({ ...one, ...of, ...CORRECTED })))
  selection.only(...annotations.map((one) => ({ ...one, ...of, ...CORRECTED })))
  if (studio.blind) answer(others, { name: of.name })
  else void studio.edit('instances.classify', { ids: others.map((one) => one.id), ...of })
}

export function setImageValues(values: Record<string, string | null>): void {
  const video = studio.video
  if (!video) return
  studio.blocks?.setImageValues(studio.shown, withValues(studio.imageValues(studio.shown), values))
  studio.blocks?.touched()
  void studio.edit('image.values', { video: video.id, first: studio.shown, last: studio.shown, values })
}

function withValues(values: Values, more: Record<string, string | null>): Values {
  const entries = Object.entries({ ...values, ...more }).filter(([, value]) => value !== null)
  return Object.fromEntries(entries) as Values
}

const reaches = (one: Annotation): boolean => (one.score ?? 1) >= settings.values.threshold

/** The proposals among these that the list's filter shows. */
function proposalsShown(annotations: Annotation[]): Annotation[] {
  const { project } = studio
  if (!project) return []
  const seen = (frame: number): boolean => seenBy(review.reviews?.runs ?? [], frame).includes(review.me)
  return annotations.filter((one) => one.proposal && passes(ui.filter, project.schema, one, seen(one.frame)))
}

/** What is decided on for a whole frame: its proposals that the filter shows, from the threshold on and below it. */
export function proposalsInSight(): Record<Verdict, Annotation[]> {
  const shown = proposalsShown(studio.annotations(studio.shown))
  return { accept: shown.filter(reaches), reject: shown.filter((one) => !reaches(one)) }
}

/** The same in a range, where the filter leaves something out. */
async function proposalsIn({ first, last }: Range): Promise<Record<Verdict, string[]>> {
  const found: Record<Verdict, string[]> = { accept: [], reject: [] }
  for (let from = first; from <= last; from += AT_ONCE) {
    const { annotations } = await api.annotations(studio.video?.id ?? '', from, Math.min(last, from + AT_ONCE - 1))
    for (const one of proposalsShown(annotations)) found[reaches(one) ? 'accept' : 'reject'].push(one.id)
  }
  return found
}

/** All proposals of a range that the filter shows: accepted from the threshold on, rejected below it. */
export async function decideRange(verdict: Verdict, range: Range): Promise<void> {
  const where = whereText(range)
  let what: Record<string, unknown> = { video: studio.video?.id, ...range, threshold: settings.values.threshold }
  if (filters(ui.filter)) {
    const found = await proposalsIn(range).catch((error: Error) => messages.error(error.message))
    if (!found?.[verdict].length) return
    what = { ids: found[verdict] }
  }
  const outcome = await studio.edit(`proposals.${verdict}`, what)
  if (outcome) tellDecided(verdict, where, outcome.changed)
}

/** What is decided on, in words: this frame or a range, and whether a filter leaves something out. */
export function whereText(range: Range | null): string {
  const where = range ? t('decideRange', { ...range }) : t('decideFrame')
  return filters(ui.filter) ? t('decideFiltered', { where }) : where
}

/** How many proposals of a range the two buttons would decide on. */
export async function undecidedIn(range: Range): Promise<Record<Verdict, number>> {
  if (filters(ui.filter)) {
    const found = await proposalsIn(range)
    return { accept: found.accept.length, reject: found.reject.length }
  }
  const payload = { video: studio.video?.id, ...range, threshold: settings.values.threshold }
  const [accept, reject] = await Promise.all((['accept', 'reject'] as const).map((verdict) => studio.preview(`proposals.${verdict}`, payload)))
  return { accept: accept?.changed ?? 0, reject: reject?.changed ?? 0 }
}

function tellDecided(verdict: Verdict, where: string, count: number): void {
  messages.info(t(verdict === 'accept' ? 'acceptedCount' : 'rejectedCount', { where, count }))
}

/** Selected proposals, or with `all` those of the frame that the filter shows (accept: above the threshold, reject: below). */
export function decide(verdict: Verdict, all: boolean): void {
  const chosen = selection.annotations.filter((one) => one.proposal)
  const wanted = all || (!chosen.length && verdict === 'accept') ? proposalsInSight()[verdict] : chosen
  const where = whereText(null)
  if (!wanted.length) return
  if (verdict === 'accept') show(wanted.map((one) => ({ ...one, proposal: false })))
  else wanted.forEach((one) => studio.blocks?.take(one.id))
  studio.blocks?.touched()
  void studio.edit(`proposals.${verdict}`, { ids: wanted.map((one) => one.id) }).then((outcome) => {
    if (all && outcome) tellDecided(verdict, where, outcome.changed)
  })
}

export function undo(): void {
  void studio.edit('undo', {})
}

export function redo(): void {
  void studio.edit('redo', {})
}
