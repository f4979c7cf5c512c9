/** Who is who: the edits behind the identity menu. */

import { t } from '../text/i18n.svelte'
import { messages } from './messages.svelte'
import { selection } from './selection.svelte'
import { settings } from './settings.svelte'
import { chordText } from '../lib/keys'
import { draft } from './spans.svelte'
import { studio } from './studio.svelte'

async function send(kind: string, payload: Record<string, unknown>): Promise<boolean> {
  const outcome = await studio.edit(kind, payload)
  if (outcome) messages.info(t('identityDone', { changed: outcome.changed }))
  return outcome !== null
}

/** An edit of numbers: what is selected stays selected under its new one, unless something else was selected meanwhile. */
async function renumber(kind: string, payload: Record<string, unknown>): Promise<boolean> {
  const { annotations: chosen, keys } = selection
  if (!(await send(kind, payload))) return false
  if (selection.keys === keys) selection.only(...chosen.flatMap((one) => studio.blocks?.find(one.id) ?? []))
  return true
}

/** The one selected identity; tells where there is none. */
export function theTrack(): { group: string; name: string; number: number } | null {
  const [track] = selection.trackList
  if (selection.trackList.length === 1 && track && track.number !== null) return { ...track, number: track.number }
  messages.info(t('needTrack'))
  return null
}

/** Numbers of the same class, for swap and merge. */
export function otherNumbers(track: { group: string; name: string; number: number | null }): number[] {
  return studio.tracks
    .filter((one) => one.group === track.group && one.name === track.name && one.number !== track.number)
    .flatMap((one) => one.number ?? [])
    .sort((a, b) => a - b)
}

export async function setNumber(number: number | null): Promise<void> {
  const chosen = selection.annotations
  if (chosen.length) await renumber('track.set', { ids: chosen.map((one) => one.id), number })
}

/** Another number for the selected track in the marked range only. */
export async function setNumberInRange(to: number): Promise<void> {
  const track = theTrack()
  const range = track && markedRange()
  if (!track || !range) return
  if (await renumber('track.range', { video: studio.video?.id, ...track, to, ...range })) draft.done(range)
}

export async function swapWith(number: number): Promise<void> {
  const track = theTrack()
  if (!track) return
  const { group, name } = track
  const payload = { group, name, first_number: track.number, second_number: number, at: studio.shown }
  await renumber('track.swap', { video: studio.video?.id, ...payload })
}

export async function mergeWith(number: number): Promise<void> {
  const track = theTrack()
  if (!track) return
  await send('track.merge', { video: studio.video?.id, group: track.group, name: track.name, keep: track.number, other: number })
}

export async function splitHere(): Promise<void> {
  const track = theTrack()
  if (track) await renumber('track.split', { video: studio.video?.id, ...track, at: studio.shown })
}

export async function extendBack(): Promise<void> {
  const track = theTrack()
  if (track) await send('track.extend', { video: studio.video?.id, ...track, first: studio.shown })
}

function markedRange(): { first: number; last: number } | null {
  if (draft.range) return draft.range
  messages.info(t('needRange', { start: chordText(settings.keys.spanStart), end: chordText(settings.keys.spanEnd) }))
  return null
}

export async function interpolate(): Promise<void> {
  const track = theTrack()
  const range = track && markedRange()
  if (track && range && (await send('boxes.interpolate', { video: studio.video?.id, ...track, ...range }))) draft.done(range)
}

/** The selected boxes of this frame (or all) in every frame of the marked range. */
export async function pasteRange(): Promise<void> {
  const range = markedRange()
  if (!range) return
  const ids = selection.annotations.map((one) => one.id)
  const payload = { video: studio.video?.id, source: studio.shown, ...range, ...(ids.length ? { ids } : {}) }
  if (await send('boxes.paste', payload)) draft.done(range)
}
