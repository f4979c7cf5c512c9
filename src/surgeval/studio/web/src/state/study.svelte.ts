/** Agreement studies: for those who run one its results and decisions, for an annotator what is left to answer. */

import { api } from '../api'
import { Refused } from '../lib/queue'
import { nextOpen, type Disagreement, type Progress, type Results, type Segment, type Study } from '../lib/study'
import { t } from '../text/i18n.svelte'
import { messages } from './messages.svelte'
import { selection } from './selection.svelte'
import { studio } from './studio.svelte'
import { ui } from './ui.svelte'

class Studies {
  list = $state.raw<Study[]>([])
  id = $state('')
  results = $state.raw<Results | null>(null)
  /** Why there are no results yet. */
  trouble = $state('')
  after = $state(false)
  unanswered = $state(false)
  rows = $state.raw<Disagreement[]>([])
  /** How many of them nobody has decided. */
  open = $derived(this.rows.filter((row) => !row.decision).length)
  progress = $state.raw<Progress | null>(null)
  chosen = $derived(this.list.find((one) => one.id === this.id) ?? this.list.at(-1) ?? null)

  constructor() {
    studio.whenStale('studies', () => this.load())
  }

  async load(): Promise<void> {
    if (studio.blind) {
      this.progress = await api.progress().catch(() => this.progress)
      return
    }
    this.list = await api.studies().catch(() => this.list)
    if (ui.tab === 'disagreements') await this.compare()
  }

  choose(id: string): void {
    this.id = id
    void this.measure()
    void this.compare()
  }

  /** The kappas of the chosen study: asked for when they are looked at, as they take the server a moment. */
  async measure(): Promise<void> {
    this.results = null
    await this.ask(async (study) => {
      const results = await api.results(study, this.after)
      if (this.chosen?.id === study) this.results = results
    })
  }

  /** The instances on which people differ. */
  async compare(): Promise<void> {
    await this.ask(async (study) => {
      const found = await api.disagreements(study, this.unanswered)
      if (this.chosen?.id === study) this.rows = found.rows
    })
  }

  private async ask(look: (study: string) => Promise<void>): Promise<void> {
    const study = this.chosen
    if (!study) return
    this.trouble = study.instances ? '' : t('studyEmpty')
    if (!study.instances) return void (this.rows = [])
    try {
      await look(study.id)
    } catch (error) {
      this.trouble = error instanceof Refused ? error.message : (error as Error).message
    }
  }

  async make(title: string, annotators: string[], segments: Segment[], seed: number): Promise<boolean> {
    const id = studio.queue.newId()
    if (!(await studio.edit('study.add', { id, title, annotators, segments, seed }))) return false
    await this.load()
    this.choose(id)
    return true
  }

  async remove(): Promise<void> {
    if (!this.chosen || !(await studio.edit('study.remove', { study: this.chosen.id }))) return
    messages.info(t('studyRemoved'))
    await this.load()
    this.choose('')
  }

  /** To the frame of a disagreement, with its instance selected. */
  async show(row: Disagreement): Promise<void> {
    await goTo(row.video, row.frame, row.instance)
  }

  async decide(row: Disagreement, what: Record<string, unknown>): Promise<boolean> {
    const outcome = await studio.edit('study.decide', { study: this.chosen?.id, instance: row.instance, ...what })
    if (outcome) await this.compare()
    return outcome !== null
  }

  /** An annotator's next instance without a complete answer. */
  async nextUnanswered(): Promise<void> {
    await this.load()
    const [selected] = selection.annotations
    const next = nextOpen(this.progress?.open ?? [], studio.video?.id ?? '', studio.frame, selected?.id ?? '')
    if (next) await goTo(...next)
    else messages.info(t('allAnswered'))
  }
}

async function goTo(video: string, frame: number, id: string): Promise<void> {
  const other = studio.project?.videos.find((one) => one.id === video)
  if (!other) return
  if (other.id === studio.video?.id) await studio.go(frame)
  else await studio.open(other, frame)
  const one = studio.blocks?.find(id)
  if (one) selection.only(one)
}

export const studies = new Studies()
