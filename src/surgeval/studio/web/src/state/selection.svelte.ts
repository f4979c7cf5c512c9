/** What is selected. Things with an identity stay selected from frame to frame. */

import { trackKey, trackOf, type Annotation, type Track } from '../lib/types'
import type { Edge } from '../lib/spans'
import { studio } from './studio.svelte'

class Selection {
  /** Identities, by key. */
  private tracks = $state.raw(new Map<string, Track>())
  /** Instances without an identity. */
  private ids = $state.raw(new Set<string>())
  span = $state<string | null>(null)
  edge = $state<Edge>('last')

  annotations = $derived.by(() => studio.annotations(studio.shown).filter((one) => this.has(one)))
  /** Identities for spans; instances without one stand for their class's unnumbered ones. */
  trackList = $derived.by(() => {
    const list = new Map(this.tracks)
    for (const id of this.ids) {
      void studio.tick
      const one = studio.blocks?.find(id)
      if (one) list.set(trackKey(trackOf(one)), trackOf(one))
    }
    return [...list.values()]
  })

  trackKeys = $derived<ReadonlySet<string>>(new Set(this.tracks.keys()))

  /** What is selected, as one text that changes only when the selection does. */
  keys = $derived([...this.tracks.keys(), ...this.ids].sort().join('|'))

  has(one: Annotation): boolean {
    return one.track === null ? this.ids.has(one.id) : this.tracks.has(trackKey(trackOf(one)))
  }

  hasTrack(track: Track): boolean {
    return this.tracks.has(trackKey(track))
  }

  get empty(): boolean {
    return !this.tracks.size && !this.ids.size
  }

  only(...annotations: Annotation[]): void {
    this.tracks = new Map()
    this.ids = new Set()
    for (const one of annotations) this.add(one)
  }

  add(one: Annotation): void {
    if (one.track === null) this.ids = new Set([...this.ids, one.id])
    else this.tracks = new Map([...this.tracks, [trackKey(trackOf(one)), trackOf(one)]])
  }

  toggle(one: Annotation): void {
    if (!this.has(one)) return this.add(one)
    if (one.track === null) this.ids = new Set([...this.ids].filter((id) => id !== one.id))
    else this.tracks = new Map([...this.tracks].filter(([key]) => key !== trackKey(trackOf(one))))
  }

  onlyTrack(track: Track): void {
    this.ids = new Set()
    this.tracks = new Map([[trackKey(track), track]])
  }

  toggleTrack(track: Track): void {
    const next = new Map(this.tracks)
    if (!next.delete(trackKey(track))) next.set(trackKey(track), track)
    this.tracks = next
  }

  clear(): void {
    this.tracks = new Map()
    this.ids = new Set()
    this.span = null
  }

  /** The next thing of the frame, round and round. */
  cycle(by: number): void {
    const all = [...studio.annotations(studio.shown)].sort((a, b) => a.box[0] - b.box[0] || a.box[1] - b.box[1])
    if (!all.length) return
    const at = all.findIndex((one) => this.has(one))
    const next = all[(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by + all.length) % all.length]
    if (next) this.only(next)
  }
}

export const selection = new Selection()
