/** Agreement studies: for those who run one its results and decisions, for an annotator what is left to answer. */

import { api } from '../api'
import { InOrder, Latest } from '../lib/latest'
import { nextOpen, type Disagreement, type Progress, type Results, type Segment, type Study } from '../lib/study'
import { t } from '../text/i18n.svelte'
import { goTo, journeys } from './journeys'
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

  private readonly asked = { list: new InOrder(), results: new Latest(), rows: new InOrder() }

  constructor() {
    studio.whenStale('studies', () => this.load())
  }

  async load(): Promise<void> {
    const inOrder = this.asked.list.ask()
    if (studio.blind) {
      const progress = await api.progress().catch(() => null)
      if (progress && inOrder()) this.progress = progress
      return
    }
    const list = await api.studies().catch(() => null)
    if (list && inOrder()) this.list = list
    if (ui.tab === 'disagreements') await this.compare()
  }

  choose(id: string): void {
    this.id = id
    void this.measure()
    void this.compare()
  }

  /** The kappas of the chosen study: asked for when they are looked at, as they take the server a moment. */
  async measure(): Promise<void> {
    const latest = this.asked.results.ask()
    this.results = null
    await this.ask(async (study) => {
      const results = await api.results(study, this.after)
      if (this.chosen?.id === study && latest()) this.results = results
    })
  }

  /** The instances on which people differ. */
  async compare(): Promise<void> {
    const inOrder = this.asked.rows.ask()
    const { unanswered } = this
    await this.ask(async (study) => {
      const found = await api.disagreements(study, unanswered)
      if (this.chosen?.id === study && this.unanswered === unanswered && inOrder()) this.rows = found.rows
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
      if (this.chosen?.id === study.id) this.trouble = (error as Error).message
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
    if (!this.list.some((one) => one.id === this.id)) this.choose('') // unless another was chosen meanwhile
  }

  /** To the frame of a disagreement, with its instance selected. */
  async show(row: Disagreement): Promise<void> {
    await goTo(row.frame, row.instance, row.video)
  }

  async decide(row: Disagreement, what: Record<string, unknown>): Promise<boolean> {
    const outcome = await studio.edit('study.decide', { study: this.chosen?.id, instance: row.instance, ...what })
    if (outcome) await this.compare()
    return outcome !== null
  }

  /** An annotator's next instance without a complete answer. */
  nextUnanswered(): Promise<void> {
    return journeys.begin(async (here) => {
      const inOrder = this.asked.list.ask()
      const progress = await api.progress()
      if (inOrder()) this.progress = progress
      if (!here()) return
      const [selected] = selection.annotations
      const next = nextOpen(progress.open, studio.video?.id ?? '', studio.frame, selected?.id ?? '')
      if (!next) return messages.info(t('allAnswered'))
      const [video, frame, instance] = next
      await goTo(frame, instance, video)
    })
  }
}

export const studies = new Studies()
