/** The span being made (start, end, values), and what can be done to a stored one. */

import { edgeMoved, frameWithin, merged, neighbour, passedOn, rangeOf, type Edge, type Range } from '../lib/spans'
import { Refused } from '../lib/queue'
import { IMAGE, type Outcome, type Span, type Track } from '../lib/types'
import { t } from '../text/i18n.svelte'
import { answerOver } from './answers'
import { messages } from './messages.svelte'
import { selection } from './selection.svelte'
import { studio } from './studio.svelte'
import { ui } from './ui.svelte'

class Draft {
  start = $state<number | null>(null)
  end = $state<number | null>(null)
  values = $state<Record<string, string | null>>({})
  preview = $state.raw<Outcome | null>(null)
  previewError = $state('')
  private timer = 0
  private asked = 0

  active = $derived(this.start !== null || this.end !== null)
  /** Complete once both ends are marked. */
  range = $derived<Range | null>(this.start !== null && this.end !== null ? rangeOf(this.start, this.end) : null)
  /** No track: the whole frame. */
  tracks = $derived<Track[]>(ui.imageSlot ? [] : selection.trackList)
  ready = $derived(this.range !== null && Object.keys(this.values).length > 0)

  mark(edge: 'start' | 'end', frame: number): void {
    this[edge] = frameWithin(frame, studio.video?.frames ?? 0)
    this.ask()
  }

  choose(attribute: string, value: string | null): void {
    this.values = { ...this.values, [attribute]: value }
    this.ask()
  }

  forget(attribute: string): void {
    this.values = Object.fromEntries(Object.entries(this.values).filter(([name]) => name !== attribute))
    this.ask()
  }

  cancel(): void {
    window.clearTimeout(this.timer)
    this.asked += 1 // an answer on its way is about a span that is none any more
    this.start = null
    this.end = null
    this.values = {}
    this.preview = null
    this.previewError = ''
  }

  /** A range was used: it is given up, unless another one was marked meanwhile. */
  done(range: Range): void {
    if (this.start === null || this.end === null) return
    const { first, last } = rangeOf(this.start, this.end)
    if (first === range.first && last === range.last) this.cancel()
  }

  /** Ask, a moment after the last change, what confirming would do. */
  ask(): void {
    window.clearTimeout(this.timer)
    const turn = ++this.asked
    this.preview = null
    this.previewError = ''
    if (!this.ready) return
    this.timer = window.setTimeout(async () => {
      try {
        const outcome = await studio.preview(...(await this.request()))
        if (turn === this.asked) this.preview = outcome
      } catch (error) {
        if (turn === this.asked && error instanceof Refused) this.previewError = error.message
      }
    }, 150)
  }

  /** One edit over the whole range; where only the start is marked, the range ends at this frame. */
  async confirm(): Promise<void> {
    if (this.start !== null && this.end === null) this.end = studio.frame
    else if (this.end !== null && this.start === null) this.start = studio.frame
    if (!this.ready) return this.ask()
    const { start, end, values } = this
    const video = studio.video?.id
    const asked = this.request() // of what is marked now: the next span may begin before it is there
    this.cancel()
    const request = await asked.catch((error: Error) => messages.error(error.message))
    if (!request) {
      if (!this.active && studio.video?.id === video) Object.assign(this, { start, end, values })
      return
    }
    const outcome = await store(...request)
    if (!outcome) return
    const { changed, skipped, absent } = outcome
    messages.info(t('spanStored', { changed, skipped, absent }))
  }

  /** The edit that is meant: a span, or in a blind study an answer for every instance in it. */
  private async request(): Promise<[string, Record<string, unknown>]> {
    const values = $state.snapshot(this.values)
    if (!this.range) throw new Error('a span without both ends was asked for')
    if (!studio.blind) return ['span.add', newSpan(this.tracks, this.range, values)]
    return ['study.answer', await answerOver(this.tracks, this.range, values)]
  }
}

export const draft = new Draft()

/** What the server is sent of a span; without a track it is about the whole frame. */
function newSpan(on: Track[], range: Range, values: Record<string, string | null>): Record<string, unknown> {
  const tracks = on.map(({ group, name, number }) => ({ group, name, number }))
  return { id: studio.queue.newId(), video: studio.video?.id, ...range, values, ...(tracks.length ? { tracks } : {}) }
}

/** Send it. A span is shown and can be held at once: the list of them comes again a while after the last edit. */
function store(kind: string, payload: Record<string, unknown>): Promise<Outcome | null> {
  if (kind === 'span.add' && payload.video === studio.video?.id) {
    const unsaid = { tracks: [{ group: IMAGE, name: IMAGE, number: null }], source: 'hand' }
    const stamp = { author: studio.project?.author ?? '', time: Date.now() / 1000, overridden_by: [], version: 0 }
    studio.spans = [...studio.spans, { ...unsaid, ...payload, ...stamp } as unknown as Span]
  }
  return studio.edit(kind, payload)
}

interface Held {
  attribute: string
  value: string
  image: boolean
  tracks: Track[]
  /** The key that is down; empty for a button under the pointer. */
  key: string
  /** The frames that have passed, round a loop too. */
  passed: Range[]
}

/** A value that is held while frames pass: written to exactly those when it is let go. */
class Hold {
  current = $state.raw<Held | null>(null)

  begin(attribute: string, value: string, image: boolean, key = ''): void {
    if (!image && selection.empty) return
    if (this.current) void this.end()
    const frame = studio.shown
    const tracks = image ? [] : selection.trackList
    this.current = { attribute, value, image, tracks, key, passed: [{ first: frame, last: frame }] }
  }

  /** Another frame is on the screen. Frames that fast playing leaves out have passed too; those a loop jumps over have not. */
  pass(frame: number, loop: Range | null): void {
    if (this.current) this.current = { ...this.current, passed: passedOn(this.current.passed, frame, loop) }
  }

  /** The key or button is let go; another key than the held one is none of its business. */
  async end(key = this.current?.key): Promise<void> {
    const held = this.current
    if (!held || key !== held.key) return
    this.current = null
    const values = { [held.attribute]: held.value }
    const ranges = merged(held.passed)
    const write = async (range: Range): Promise<Outcome | null> =>
      studio.blind
        ? store('study.answer', await answerOver(held.tracks, range, values))
        : store('span.add', { ...newSpan(held.tracks, range, values), source: 'playing' })
    const outcomes = await Promise.all(ranges.map(write)).catch((error: Error) => {
      messages.error(error.message)
      return []
    })
    if (outcomes.some(Boolean)) messages.info(t('holdStored', { value: held.value, frames: ranges.map(({ first, last }) => `${first}–${last}`).join(', ') }))
  }
}

export const hold = new Hold()

export function selectedSpan(): Span | null {
  return studio.spans.find((span) => span.id === selection.span) ?? null
}

export function setEdges(span: Span, range: Range): void {
  if (range.first === span.first && range.last === span.last) return
  studio.spans = studio.spans.map((one) => (one.id === span.id ? { ...one, ...range } : one))
  void studio.edit('span.edges', { id: span.id, ...range })
}

export function nudge(by: number): void {
  const span = selectedSpan()
  if (!span || !studio.video) return
  const range = edgeMoved(span, selection.edge, span[selection.edge] + by, studio.video.frames)
  setEdges(span, range)
  void studio.go(range[selection.edge])
}

export function setEdge(span: Span, edge: Edge, frame: number): void {
  setEdges(span, edgeMoved(span, edge, frame, studio.video?.frames ?? 0))
}

/** Two out of one: the second begins at this frame. */
export function cutSpan(): void {
  const span = selectedSpan()
  const at = studio.frame
  if (!span || at <= span.first || at > span.last) return
  const id = studio.queue.newId()
  studio.spans = studio.spans.flatMap((one) => (one.id === span.id ? [{ ...span, last: at - 1 }, { ...span, id, first: at }] : [one]))
  void studio.edit('span.cut', { id: span.id, at, new: id })
}

/** One out of two: the earlier one keeps its name, as the server has it. */
export function joinSpan(): void {
  const span = selectedSpan()
  if (!span) return
  const other = neighbour(span, studio.spans)
  if (!other) return messages.info(t('noJoin'))
  const [one, two] = drawnFirst(span, other)
  const whole = { ...one, last: Math.max(one.last, two.last) }
  studio.spans = studio.spans.flatMap((old) => (old.id === one.id ? [whole] : old.id === two.id ? [] : [old]))
  selection.span = one.id
  void studio.edit('span.join', { ids: [span.id, other.id] })
}

function drawnFirst(a: Span, b: Span): [Span, Span] {
  return a.first < b.first || (a.first === b.first && a.id < b.id) ? [a, b] : [b, a]
}

export function deleteSpan(): void {
  const span = selectedSpan()
  if (!span) return
  selection.span = null
  studio.spans = studio.spans.filter((one) => one.id !== span.id)
  void studio.edit('span.delete', { id: span.id })
}

export function stepSpan(by: number): void {
  const all = [...studio.spans].sort((a, b) => a.first - b.first || (a.id < b.id ? -1 : 1))
  if (!all.length) return
  const at = all.findIndex((span) => span.id === selection.span)
  const next = all[(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by + all.length) % all.length]
  if (next) pickSpan(next)
}

/** Select a span and go there; playback loops inside it while it is selected. */
export function pickSpan(span: Span, edge: Edge = 'first'): void {
  selection.span = span.id
  selection.edge = edge
  void studio.go(span[edge])
}
