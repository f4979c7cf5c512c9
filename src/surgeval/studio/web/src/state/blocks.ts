/** The annotations of a video in blocks of frames, loaded when a frame comes near and patched when something changes. */

import { api } from '../api'
import type { Annotation, Track, Values } from '../lib/types'

export const BLOCK = 200
const KEPT = 50 // blocks: ten thousand frames

export class Blocks {
  /** Every cached block is at least as new as this version. */
  version = 0
  /** The last edit of this tab that the server has stored: what is older than it is not shown any more. */
  private stored = 0
  private readonly byFrame = new Map<number, Annotation[]>()
  private readonly byId = new Map<string, Annotation>()
  private readonly names = new Map<number, string>()
  private readonly times = new Map<number, number | null>()
  private readonly values = new Map<number, Values>()
  private readonly loading = new Map<number, Promise<number>>()
  private readonly held = new Set<number>()

  constructor(
    private readonly video: string,
    private readonly frames: number,
    private readonly changed: () => void,
    /** Whether edits are on their way that are shown already: what comes from the server is older than them. */
    private readonly ahead: () => boolean = () => false,
  ) {}

  at(frame: number): Annotation[] {
    return this.byFrame.get(frame) ?? []
  }

  find(id: string): Annotation | undefined {
    return this.byId.get(id)
  }

  /** The tracks of everything at hand, also of edits that the server does not know yet. */
  tracks(): Track[] {
    return [...this.byId.values()].map(({ group, name, track }) => ({ group, name, number: track }))
  }

  name(frame: number): string {
    return this.names.get(frame) ?? ''
  }

  time(frame: number): number | null {
    return this.times.get(frame) ?? null
  }

  imageValues(frame: number): Values {
    return this.values.get(frame) ?? {}
  }

  /** Answers when the frame's block is here; the next block is fetched ahead. */
  load(frame: number): Promise<number> {
    const block = Math.floor(frame / BLOCK)
    const near = frame % BLOCK > BLOCK * 0.6 ? block + 1 : frame % BLOCK < BLOCK * 0.2 ? block - 1 : block
    if (near >= 0 && near * BLOCK < this.frames) void this.block(near).catch(() => null)
    return this.block(block)
  }

  has(frame: number): boolean {
    return this.byFrame.has(frame)
  }

  private block(block: number): Promise<number> {
    const known = this.loading.get(block)
    if (known) return known
    const loading = this.fetchBlock(block)
    this.loading.set(block, loading)
    this.forget(block)
    loading.catch(() => this.loading.delete(block))
    return loading
  }

  /** A long session must not hold a whole long video: the blocks farthest away go. */
  private forget(near: number): void {
    this.held.add(near)
    const far = [...this.held].sort((a, b) => Math.abs(b - near) - Math.abs(a - near))
    for (const block of far.slice(0, Math.max(0, far.length - KEPT))) {
      this.loading.delete(block)
      this.held.delete(block)
      for (let frame = block * BLOCK; frame < (block + 1) * BLOCK; frame++) {
        for (const old of this.at(frame)) this.byId.delete(old.id)
        for (const map of [this.byFrame, this.names, this.times, this.values]) map.delete(frame)
      }
    }
  }

  private async fetchBlock(block: number, tries = 3): Promise<number> {
    const first = block * BLOCK
    const last = Math.min(this.frames, first + BLOCK) - 1
    const [frames, found] = await Promise.all([
      api.frames(this.video, first, last),
      api.annotations(this.video, first, last),
    ])
    // Something was stored meanwhile, or is on its way: what came is older than what is shown.
    const held = this.byFrame.has(first)
    if (found.version < Math.max(this.version, this.stored) && tries > 1) return this.fetchBlock(block, tries - 1)
    if (held && this.ahead()) {
      await quiet(this.ahead)
      return this.fetchBlock(block, tries)
    }
    for (let frame = first; frame <= last; frame++) {
      for (const old of this.at(frame)) this.byId.delete(old.id)
      this.byFrame.set(frame, [])
      this.values.set(frame, frames.values[String(frame)] ?? {})
    }
    frames.names.forEach((name, place) => this.names.set(frames.first + place, name))
    frames.times.forEach((time, place) => this.times.set(frames.first + place, time))
    for (const one of found.annotations) this.put(one)
    this.changed()
    return found.version
  }

  /** The server has stored an edit of this tab. */
  acknowledge(version: number): void {
    this.stored = Math.max(this.stored, version)
  }

  /** What edits did since the version at hand; answers whether that is all, else blocks must be loaded again. */
  async catchUp(): Promise<boolean> {
    if (this.ahead()) return true // the last of them catches up for all
    const changes = await api.changes(this.video, this.version)
    if (this.ahead()) return true
    if (changes.version < this.stored) return this.catchUp() // an edit was stored while this was on its way
    for (const id of changes.gone) this.take(id)
    for (const one of changes.annotations) {
      if (this.byFrame.has(one.frame) || this.byId.has(one.id)) this.put(one)
    }
    this.version = Math.max(this.version, changes.version)
    this.changed()
    return !changes.more
  }

  /** Every block is fetched again before it is next shown; this frame's now, and what it shows stays until then. */
  async reload(frame: number): Promise<void> {
    this.loading.clear()
    const version = await this.block(Math.floor(frame / BLOCK))
    this.version = Math.max(this.version, version)
  }

  /** A change shown at once, before the server has answered. */
  put(one: Annotation): void {
    this.take(one.id)
    const list = this.byFrame.get(one.frame)
    if (!list) return
    this.byFrame.set(one.frame, [...list, one].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)))
    this.byId.set(one.id, one)
  }

  take(id: string): void {
    const old = this.byId.get(id)
    if (!old) return
    this.byId.delete(id)
    this.byFrame.set(old.frame, this.at(old.frame).filter((one) => one.id !== id))
  }

  setImageValues(frame: number, values: Values): void {
    this.values.set(frame, values)
  }

  touched(): void {
    this.changed()
  }
}

/** Until the edits on their way have arrived. */
async function quiet(ahead: () => boolean): Promise<void> {
  while (ahead()) await new Promise((done) => setTimeout(done, 50))
}
