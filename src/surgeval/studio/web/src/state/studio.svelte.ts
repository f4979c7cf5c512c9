/** The project at hand: its video, what is cached of it, and the one way edits leave this tab. */

import { api, listen } from '../api'
import { OperationQueue, Refused, sessionName } from '../lib/queue'
import type {
  Annotation, Flag, Outcome, Presence, Problem, Project, Span, StudioEvent, TrackSummary, Values, Video,
} from '../lib/types'
import { t } from '../text/i18n.svelte'
import { Blocks } from './blocks'
import { messages } from './messages.svelte'
import { Pictures } from './pictures'
import { settings } from './settings.svelte'

const TOUCHES_FRAMES = /^(image\.|span\.|undo|redo|project\.|schema\.|frames\.)/

class Studio {
  project = $state.raw<Project | null>(null)
  video = $state.raw<Video | null>(null)
  spans = $state.raw<Span[]>([])
  tracks = $state.raw<TrackSummary[]>([])
  presence = $state.raw<Presence[]>([])
  flags = $state.raw<Flag[]>([])
  problems = $state.raw<Problem[]>([])
  /** The wanted frame, and the one that is painted: they differ while a picture is on its way. */
  frame = $state(0)
  shown = $state(-1)
  picture = $state.raw<HTMLImageElement | null>(null)
  pictureError = $state(false)
  tick = $state(0)
  loadError = $state('')
  readonly session = sessionName()
  readonly queue: OperationQueue
  blocks: Blocks | null = null
  private pictures: Pictures | null = null
  private direction = 1
  private refreshTimer = 0
  private catching: Promise<void> | null = null
  private catchAgain = false

  constructor() {
    const wire = { send: api.operation, wait: (ms: number) => new Promise<void>((done) => setTimeout(done, ms)) }
    this.queue = new OperationQueue(wire, this.session, () => this.blocks?.version ?? this.project?.version ?? 0, (news) => {
      messages.pending = news.pending
      messages.trouble = news.trouble
    })
  }

  async start(): Promise<void> {
    try {
      this.project = await api.project()
    } catch (error) {
      this.loadError = error instanceof Error ? error.message : String(error)
      return
    }
    settings.start(this.project.settings, this.project.keys, (key, value) => {
      void this.edit('setting.set', { owner: this.project?.author ?? '', key, value })
    })
    const before = this.remembered()
    const video = this.project.videos.find((one) => one.id === before?.video) ?? this.project.videos[0]
    if (video) await this.open(video, before?.video === video.id ? before.frame : 0)
    listen((event) => this.heard(event), (well) => this.connected(well))
  }

  async open(video: Video, frame = 0): Promise<void> {
    this.video = video
    this.shown = -1
    this.picture = null
    this.pictures = new Pictures(video.id)
    this.blocks = new Blocks(video.id, video.frames, () => (this.tick += 1))
    this.blocks.version = this.project?.version ?? 0
    this.spans = []
    this.presence = []
    this.tracks = []
    this.flags = []
    this.problems = []
    void this.refresh()
    await this.go(Math.min(frame, Math.max(0, video.frames - 1)))
  }

  annotations(frame: number): Annotation[] {
    void this.tick
    return this.blocks?.at(frame) ?? []
  }

  imageValues(frame: number): Values {
    void this.tick
    return this.blocks?.imageValues(frame) ?? {}
  }

  frameName(frame: number): string {
    void this.tick
    return this.blocks?.name(frame) ?? ''
  }

  frameTime(frame: number): number | null {
    void this.tick
    const time = this.blocks?.time(frame) ?? null
    return time ?? (this.video?.fps ? frame / this.video.fps : null)
  }

  /** Picture and boxes change together; of several frames asked for quickly the last one is what stays. */
  async go(frame: number): Promise<void> {
    const { video, blocks, pictures } = this
    if (!video || !blocks || !pictures || !video.frames) return
    const wanted = Math.max(0, Math.min(video.frames - 1, frame))
    this.direction = Math.sign(wanted - this.frame) || this.direction
    this.frame = wanted
    const [picture, rows] = await Promise.allSettled([pictures.get(wanted), blocks.load(wanted)])
    if (this.video !== video || (this.frame !== wanted && Math.abs(this.frame - wanted) > 3)) return
    if (this.frame !== wanted && Math.abs(this.shown - this.frame) <= Math.abs(wanted - this.frame)) return
    if (rows.status === 'rejected') messages.error(String((rows.reason as Error).message))
    this.pictureError = picture.status === 'rejected'
    this.picture = picture.status === 'fulfilled' ? picture.value : null
    this.shown = wanted
    if (this.frame === wanted) {
      pictures.prefetch(wanted, this.direction, video.frames)
      this.remember()
    }
  }

  /** Whether the picture of a frame is decoded comes with it: playback waits for this. */
  step(by: number): Promise<void> {
    return this.go(this.frame + by)
  }

  /** Send an edit. A refusal is told, and what is shown is fetched again. */
  async edit(kind: string, payload: Record<string, unknown>): Promise<Outcome | null> {
    try {
      const outcome = await this.queue.add(kind, payload)
      if (kind !== 'setting.set') await this.caughtUp(TOUCHES_FRAMES.test(kind))
      return outcome
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.status === 409) messages.conflict(t('conflict', { text: error.message }))
      else messages.error(error.message)
      if (this.blocks) {
        await this.blocks.catchUp().catch(() => false)
        await this.blocks.reload(this.frame).catch(() => undefined)
      }
      this.refreshSoon()
      return null
    }
  }

  preview(kind: string, payload: Record<string, unknown>): Promise<Outcome> {
    return api.preview(this.queue.make(kind, payload))
  }

  /** The lists beside the picture. */
  async refresh(): Promise<void> {
    const video = this.video
    if (!video) return
    const [spans, tracks, presence, flags] = await Promise.allSettled([
      api.spans(video.id),
      api.tracks(video.id),
      api.presence(video.id),
      api.flags(video.id),
    ])
    if (this.video !== video) return
    if (spans.status === 'fulfilled') this.spans = spans.value
    if (tracks.status === 'fulfilled') this.tracks = tracks.value
    if (presence.status === 'fulfilled') this.presence = presence.value
    if (flags.status === 'fulfilled') this.flags = flags.value
  }

  async findProblems(): Promise<void> {
    const video = this.video
    if (!video) return
    try {
      const problems = await api.problems(video.id)
      if (this.video === video) this.problems = problems
    } catch (error) {
      messages.error((error as Error).message)
    }
  }

  async reloadProject(): Promise<void> {
    this.project = await api.project()
    if (this.video) this.video = this.project.videos.find((one) => one.id === this.video?.id) ?? this.video
  }

  private heard(event: StudioEvent): void {
    if (event.session === this.session || event.version <= (this.blocks?.version ?? 0)) return
    if (event.video && this.video && event.video !== this.video.id) return
    void this.caughtUp(true)
  }

  private connected(well: boolean): void {
    if (well) {
      if (messages.trouble?.kind === 'offline' && !messages.pending) messages.trouble = null
      if (this.blocks && this.shown >= 0) void this.caughtUp(true)
    } else messages.trouble ??= { kind: 'offline', text: '' }
  }

  /** One request for changes at a time; edits that come meanwhile share the next one. */
  private async caughtUp(withFrames: boolean): Promise<void> {
    if (this.catching) {
      this.catchAgain ||= withFrames
      await this.catching
    }
    this.catching ??= this.fetchChanges(withFrames || this.catchAgain).finally(() => (this.catching = null))
    await this.catching
  }

  private async fetchChanges(withFrames: boolean): Promise<void> {
    const blocks = this.blocks
    if (!blocks) return
    this.catchAgain = false
    try {
      const spans = await blocks.catchUp()
      if (spans || withFrames) await blocks.reload(this.frame)
      this.refreshSoon()
    } catch (error) {
      if (error instanceof Refused) messages.error(error.message)
      else messages.trouble ??= { kind: 'offline', text: '' }
    }
  }

  private refreshSoon(): void {
    window.clearTimeout(this.refreshTimer)
    this.refreshTimer = window.setTimeout(() => void this.refresh(), 120)
  }

  private remembered(): { video: string; frame: number } | null {
    try {
      const place = JSON.parse(localStorage.getItem(this.placeKey()) ?? 'null') as { video?: unknown; frame?: unknown }
      return typeof place?.video === 'string' && typeof place.frame === 'number'
        ? { video: place.video, frame: place.frame }
        : null
    } catch {
      return null
    }
  }

  private remember(): void {
    localStorage.setItem(this.placeKey(), JSON.stringify({ video: this.video?.id, frame: this.frame }))
  }

  private placeKey(): string {
    return `surgeval studio place: ${this.project?.name ?? ''}`
  }
}

export const studio = new Studio()
