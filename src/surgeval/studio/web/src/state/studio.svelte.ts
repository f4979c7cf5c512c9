/** The project at hand: its video, what is cached of it, and the one way edits leave this tab. */

import { api, listen } from '../api'
import { InOrder } from '../lib/latest'
import { LISTS, listsOf, touchesFrames, touchesLabels, touchesMuch, touchesProject, type List } from '../lib/needs'
import { editText, Outbox, type Left } from '../lib/outbox'
import { placeOf, rememberPlace } from '../lib/place'
import type { Blind } from '../lib/study'
import { OperationQueue, Refused, sessionName } from '../lib/queue'
import { openTabs } from '../lib/tabs'
import type {
  Annotation, Flag, ImageRun, Outcome, Presence, Problem, Project, Span, StudioEvent, TrackSummary, Values, Video,
} from '../lib/types'
import { t } from '../text/i18n.svelte'
import { describeError } from '../text/errors'
import { Blocks } from './blocks'
import { messages } from './messages.svelte'
import { Pictures } from './pictures'
import { settings } from './settings.svelte'

/** Changed instances above which blocks are fetched again when they are needed, instead of every change now. */
const MANY = 500
const NAME_KEY = 'surgeval studio name'

class Studio {
  project = $state.raw<Project | null>(null)
  video = $state.raw<Video | null>(null)
  spans = $state.raw<Span[]>([])
  tracks = $state.raw<TrackSummary[]>([])
  imageRuns = $state.raw<ImageRun[]>([])
  presence = $state.raw<Presence[]>([])
  flags = $state.raw<Flag[]>([])
  problems = $state.raw<Problem[]>([])
  problemCounts = $state.raw<Record<string, number>>({})
  /** Whether problems were looked for, and whether labels changed since. */
  problemsKnown = $state<'no' | 'yes' | 'before'>('no')
  /** The wanted frame, and the one that is painted: they differ while a picture is on its way. */
  frame = $state(0)
  shown = $state(-1)
  picture = $state.raw<HTMLImageElement | null>(null)
  pictureError = $state(false)
  tick = $state(0)
  loadError = $state('')
  needsName = $state(false)
  readonly session = sessionName()
  readonly queue: OperationQueue
  blocks: Blocks | null = null
  /** Edits that closed tabs could not send. */
  unsent = $state.raw<Left[]>([])
  private outbox: Outbox | null = null
  private pictures: Pictures | null = null
  private direction = 1
  private refreshTimer = 0
  private catching: Promise<void> | null = null
  private lost = false
  private frameValuesStale = false
  private manyChanged = false
  private labelChanges = 0
  private stale = new Set<List>()
  /** Lists of this video that are in sight. */
  private readonly known = new Set<List>()
  private readonly loaders = new Map<List, () => Promise<void>>()
  private readonly asked = new Map(LISTS.map((list) => [list, new InOrder()]))
  private readonly problemsAsked = new InOrder()
  private readonly projectAsked = new InOrder()
  /** Settled when the frame asked for last is on the screen. */
  arriving: Promise<void> = Promise.resolve()

  constructor() {
    const wire = { send: api.operation, wait: (ms: number) => new Promise<void>((done) => setTimeout(done, ms)) }
    this.queue = new OperationQueue(wire, this.session, () => this.blocks?.version ?? this.project?.version ?? 0, (news) => {
      messages.pending = news.pending
      messages.trouble = news.trouble
      this.outbox?.keep(this.queue.unsent)
      if (!news.pending) this.refreshLater([]) // what waited for the edits on their way
    }, () => (this.project?.shared ? this.project.author : ''))
  }

  async start(): Promise<void> {
    try {
      const name = localStorage.getItem(NAME_KEY) ?? ''
      const project = await api.project(name)
      this.needsName = project.shared === true && !name
      if (this.needsName) return
      this.project = project
    } catch (error) {
      this.loadError = error instanceof Error ? error.message : String(error)
      return
    }
    settings.start(this.project.settings, this.project.keys, (key, value) => {
      void this.edit('setting.set', { owner: this.project?.author ?? '', key, value })
    })
    this.outbox = new Outbox(localStorage, this.sitting, this.session)
    this.unsent = this.outbox.left(await openTabs(this.session))
    const before = placeOf(localStorage, this.sitting)
    const video = this.project.videos.find((one) => one.id === before?.video) ?? this.project.videos[0]
    if (video) await this.open(video, before?.video === video.id ? before.frame : await this.firstFrame(video))
    listen((event) => this.heard(event), (state) => this.connected(state))
  }

  /** Where a video opens for the first time: at its segment in a blind study, else where something is marked. */
  private async firstFrame(video: Video): Promise<number> {
    if (this.blind) return this.blind.segments.find((one) => one.video === video.id)?.first ?? 0
    const tracks = await api.tracks(video.id).catch(() => [])
    return tracks.length ? Math.min(...tracks.map((one) => one.first)) : 0
  }

  async open(video: Video, frame = 0): Promise<void> {
    this.video = video
    this.shown = -1
    this.picture = null
    this.pictures = new Pictures(video.id)
    this.blocks = new Blocks(video.id, video.frames, () => (this.tick += 1), () => this.queue.pending > 0)
    this.blocks.version = this.project?.version ?? 0
    this.spans = []
    this.imageRuns = []
    this.presence = []
    this.tracks = []
    this.flags = []
    this.problems = []
    this.problemCounts = {}
    this.problemsKnown = 'no'
    this.known.clear()
    void this.refresh()
    await this.go(Math.min(frame, Math.max(0, video.frames - 1)))
  }

  /** What an annotator of a blind study is asked for; null where labels are seen. */
  get blind(): Blind | null {
    return this.project?.blind ?? null
  }

  /** The project, or an annotator's part in a study of it: what this browser remembers of the two never meets. */
  private get sitting(): string {
    const name = this.project?.name ?? ''
    return this.blind ? `${name} (${this.blind.study}, ${this.project?.author ?? ''})` : name
  }

  /** Lists that other parts keep: each says how its own is loaded. */
  whenStale(list: List, load: () => Promise<void>): void {
    this.loaders.set(list, load)
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
    return this.blocks?.time(frame) ?? (this.video ? frame / this.video.fps : null)
  }

  /** Who sits here, on a server of several people. */
  async introduce(name: string): Promise<void> {
    localStorage.setItem(NAME_KEY, name)
    await this.start()
  }

  go(frame: number): Promise<void> {
    return (this.arriving = this.arrive(frame))
  }

  /** Picture and boxes change together; of several frames asked for quickly the last one is what stays. */
  private async arrive(frame: number): Promise<void> {
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
      rememberPlace(localStorage, this.sitting, { video: video.id, frame: wanted })
    }
  }

  /** Whether the picture of a frame is decoded comes with it: playback waits for this. */
  step(by: number): Promise<void> {
    return this.go(this.frame + by)
  }

  /** Send what closed tabs left behind, or forget it. */
  async settleUnsent(send: boolean): Promise<void> {
    const left = this.unsent
    this.unsent = []
    const sent = send ? left.flatMap(({ operations }) => operations).map((one) => this.outcome(one.kind, this.queue.again(one))) : []
    for (const { session } of left) this.outbox?.forget(session)
    const stored = (await Promise.all(sent)).filter(Boolean).length
    if (stored) messages.info(t('unsentSent', { count: stored }))
  }

  /** Send an edit. A refusal is told, and what is shown is fetched again. */
  edit(kind: string, payload: Record<string, unknown>): Promise<Outcome | null> {
    return this.outcome(kind, this.queue.add(kind, payload))
  }

  private async outcome(kind: string, answer: Promise<Outcome>): Promise<Outcome | null> {
    try {
      const outcome = await answer
      this.blocks?.acknowledge(outcome.version)
      if (kind !== 'setting.set') await this.stored(kind, outcome.changed)
      return outcome
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.waited) messages.lost(`${editText(error.waited)}: ${error.message}`)
      else if (error.status === 409) messages.conflict(describeError(error, 'conflict'))
      else messages.error(describeError(error))
      if (this.blocks) {
        await this.blocks.catchUp().catch(() => undefined)
        await this.blocks.reload(this.frame).catch(() => undefined)
      }
      this.refreshSoon('')
      return null
    }
  }

  /** Something was stored: show it. */
  stored(kind: string, changed: number): Promise<void> {
    this.manyChanged ||= changed > MANY
    return this.caughtUp(kind)
  }

  preview(kind: string, payload: Record<string, unknown>): Promise<Outcome> {
    return api.preview(this.queue.make(kind, payload))
  }

  /** The lists beside the picture, or some of them. */
  async refresh(lists: Set<List> = new Set(LISTS)): Promise<void> {
    const video = this.video
    if (!video) return
    const inOrder = new Map([...lists].map((list) => [list, this.asked.get(list)?.ask()]))
    const quiet = this.queue.quiet()
    const load = async <T>(list: List, asked: (id: string) => Promise<T>, show: (found: T) => void): Promise<void> => {
      if (!lists.has(list)) return
      const found = await asked(video.id).catch(() => null)
      const whole = quiet()
      if (!whole) this.refreshLater([list]) // edits that are shown already are not in it
      if (!found || this.video !== video || (!whole && this.known.has(list)) || !inOrder.get(list)?.()) return
      this.known.add(list)
      show(found)
    }
    await Promise.all([
      ...[...this.loaders].filter(([list]) => lists.has(list)).map(([, loader]) => loader()),
      load('spans', api.spans, (found) => (this.spans = found)),
      ...(this.blind ? [] : [load('image', api.imageRuns, (found) => (this.imageRuns = found))]),
      load('flags', api.flags, (found) => (this.flags = found)),
      load('presence', (id) => Promise.all([api.tracks(id), api.presence(id)]), (found) => ([this.tracks, this.presence] = found)),
    ])
  }

  async findProblems(): Promise<void> {
    const video = this.video
    if (!video) return
    try {
      const changes = this.labelChanges
      const inOrder = this.problemsAsked.ask()
      const { problems, counts } = await api.problems(video.id)
      if (this.video !== video || !inOrder()) return
      this.problems = problems
      this.problemCounts = counts
      this.problemsKnown = changes === this.labelChanges ? 'yes' : 'before'
    } catch (error) {
      messages.error((error as Error).message)
    }
  }

  /** The schema and the videos as they are now; what did not change stays the same object, so nothing is redrawn. */
  async reloadProject(): Promise<void> {
    const inOrder = this.projectAsked.ask()
    const project = await api.project(this.project?.shared ? this.project.author : '')
    if (!inOrder()) return
    const before = this.project
    const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
    if (before && same(before.schema, project.schema) && same(before.videos, project.videos)) return
    this.project = project
    const video = project.videos.find((one) => one.id === this.video?.id)
    if (video && !same(video, this.video)) await this.open(video, this.frame)
  }

  private heard(event: StudioEvent): void {
    if (event.session === this.session || event.version <= (this.blocks?.version ?? 0)) return
    if (event.video && this.video && event.video !== this.video.id) return
    void this.stored(event.kind ?? '', event.changed ?? 0)
  }

  private connected(state: 'well' | 'offline' | 'token'): void {
    if (state === 'well') {
      if (messages.trouble && messages.trouble.kind !== 'disk' && !messages.pending) messages.trouble = null
      if (this.lost) void this.caughtUp('')
      this.lost = false
    } else {
      this.lost = true
      if (state === 'token') messages.trouble = { kind: state, text: '' }
      else messages.trouble ??= { kind: state, text: '' }
    }
  }

  /** Problems that were found before may be gone: said, and looked for again where much may have changed. */
  private labelsChanged(kind: string): void {
    this.labelChanges += 1
    if (this.problemsKnown === 'no') return
    this.problemsKnown = 'before'
    if (touchesMuch(kind)) void this.findProblems()
  }

  /** One request for changes at a time; edits that come meanwhile share the next one. */
  private async caughtUp(kind: string): Promise<void> {
    this.frameValuesStale ||= touchesFrames(kind)
    this.refreshSoon(kind)
    if (touchesLabels(kind)) this.labelsChanged(kind)
    if (touchesProject(kind)) void this.reloadProject().catch(() => undefined)
    if (this.catching) await this.catching
    this.catching ??= this.fetchChanges().finally(() => (this.catching = null))
    await this.catching
  }

  private async fetchChanges(): Promise<void> {
    const blocks = this.blocks
    if (!blocks) return
    const [frames, many] = [this.frameValuesStale, this.manyChanged]
    this.frameValuesStale = this.manyChanged = false
    try {
      const whole = !many && (await blocks.catchUp())
      if (!whole || frames) await blocks.reload(this.frame)
    } catch (error) {
      if (error instanceof Refused) messages.error(error.message)
      else messages.trouble ??= { kind: 'offline', text: '' }
    }
  }

  private refreshSoon(kind: string): void {
    this.refreshLater(listsOf(kind))
  }

  /** Ask for lists again, a moment after the last edit has arrived. */
  refreshLater(lists: List[]): void {
    for (const list of lists) this.stale.add(list)
    if (!this.stale.size) return
    window.clearTimeout(this.refreshTimer)
    this.refreshTimer = window.setTimeout(() => {
      if (this.queue.pending) return
      const lists = this.stale
      this.stale = new Set()
      void this.refresh(lists)
    }, 120)
  }
}

export const studio = new Studio()
