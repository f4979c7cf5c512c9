/** One person's review of questions. Everything is stored on the server at once; here is only what is looked at. */

import { api } from '../api'
import { Latest } from '../lib/latest'
import { judged, nextOpen, type AgreementTable, type QuestionItem, type QueueRow, type Role, type Verdict } from '../lib/questions'
import { t } from '../text/i18n.svelte'
import { messages } from './messages.svelte'
import { studio } from './studio.svelte'

class QuestionReview {
  role = $state<Role>('review')
  /** Leave out what so many others have judged; 0: nothing is left out. */
  each = $state(0)
  reviewer = $state('')
  items = $state.raw<QueueRow[]>([])
  place = $state(0)
  item = $state.raw<QuestionItem | null>(null)
  /** A verdict that waits for the right option and a comment. */
  verdict = $state<Verdict | null>(null)
  answer = $state<number | null>(null)
  comment = $state('')
  saving = $state(false)
  picture = $state(0)
  showGaze = $state(true)
  table = $state.raw<AgreementTable | null>(null)
  loaded = $state(false)
  done = $derived(judged(this.items))
  private starting = $state(false)
  /** Whether the question in sight is the one in turn, not the last one while the next (or another role's) is on its way. */
  settled = $derived(!this.starting && this.item !== null && this.items[this.place]?.id === this.item.id)
  private prepared: { id: string; item: Promise<QuestionItem> } | null = null
  private readonly starts = new Latest()
  private readonly shows = new Latest()
  private readonly tables = new Latest()
  /** What the questions at hand were asked for by. */
  private held: { role: Role; each: number } = { role: 'review', each: 0 }
  /** Until the verdict on its way is stored and the next question in turn. */
  private stored: Promise<void> = Promise.resolve()

  /** Begin where nothing is judged yet. */
  async start(): Promise<void> {
    const latest = this.starts.ask()
    const { role, each } = this
    this.tables.ask()
    this.table = null
    this.starting = true
    await this.stored
    try {
      const queue = await api.questions(this.author, role, each)
      if (!latest()) return
      this.held = { role, each }
      this.prepared = null
      this.reviewer = queue.reviewer
      this.items = queue.items
      this.loaded = true
    } catch (error) {
      if (!latest()) return
      ;({ role: this.role, each: this.each } = this.held)
      this.starting = false
      return messages.error((error as Error).message)
    }
    await this.show(Math.max(0, nextOpen(this.items, -1, 1)))
    if (latest()) this.starting = false
  }

  async show(place: number): Promise<void> {
    const latest = this.shows.ask()
    const row = this.items[place]
    this.place = row ? place : 0
    this.cancel()
    if (!row) {
      this.item = null
      return
    }
    try {
      const item = await this.fetch(row.id)
      if (!latest()) return // gone on meanwhile, or to another role
      this.item = item
      this.picture = 0
      this.prepareNext()
    } catch (error) {
      if (latest()) this.stay()
      messages.error((error as Error).message)
    }
  }

  /** A question that does not come leaves the one in sight in turn. */
  private stay(): void {
    const place = this.items.findIndex((row) => row.id === this.item?.id)
    if (place >= 0) this.place = place
  }

  async step(by: number): Promise<void> {
    await this.stored
    await this.show(Math.max(0, Math.min(this.items.length - 1, this.place + by)))
  }

  async stepOpen(by: 1 | -1): Promise<void> {
    await this.stored
    const next = nextOpen(this.items, this.place, by)
    if (next >= 0) await this.show(next)
    else messages.info(t('q_allDone'))
  }

  /** Jump to a question by its name, as links do. */
  async open(id: string): Promise<void> {
    await this.stored
    const place = this.items.findIndex((row) => row.id === id)
    if (place >= 0) await this.show(place)
  }

  /** Correct is stored at once; wrong and unclear wait for the right option and a comment. */
  async say(verdict: Verdict): Promise<void> {
    if (!this.item || !this.settled || this.saving) return
    const before = this.item.mine
    this.verdict = verdict
    this.answer = verdict !== 'correct' && before?.verdict === verdict ? before.answer : null
    this.comment = verdict !== 'correct' ? (before?.comment ?? '') : ''
    if (verdict === 'correct') await this.save()
  }

  choose(option: number): void {
    if (!this.verdict || !this.item || this.saving || option >= this.item.options.length || option === this.item.answer) return
    this.answer = this.answer === option ? null : option
  }

  cancel(): void {
    if (this.saving) return // it is stored as it was sent, or to be sent again
    this.verdict = null
    this.answer = null
    this.comment = ''
  }

  async save(): Promise<void> {
    const { item, verdict } = this
    if (!item || !verdict || !this.settled || this.saving) return
    const storing = this.store(item, verdict)
    this.stored = storing.then(() => undefined)
    if (await storing) await this.show(this.place)
  }

  /** Whether a verdict is stored; then the next question is in turn. */
  private async store(item: QuestionItem, verdict: Verdict): Promise<boolean> {
    this.saving = true
    try {
      await api.judge({
        item: item.id, content: item.content, verdict, answer: this.answer, comment: this.comment, role: this.held.role,
        author: this.author,
      })
    } catch (error) {
      messages.error(t('q_notSaved', { text: (error as Error).message }))
      return false
    } finally {
      this.saving = false
    }
    this.items = this.items.map((row) => (row.id === item.id ? { ...row, verdict } : row))
    this.table = null
    const next = nextOpen(this.items, this.place, 1)
    if (next >= 0) this.place = next
    else messages.info(t('q_allDone'))
    return true
  }

  async showAgreement(): Promise<void> {
    const latest = this.tables.ask()
    await this.stored
    try {
      const table = await api.agreement(this.author)
      if (latest()) this.table = table
    } catch (error) {
      messages.error((error as Error).message)
    }
  }

  private get author(): string {
    return studio.project?.shared ? studio.project.author : ''
  }

  private fetch(id: string): Promise<QuestionItem> {
    const prepared = this.prepared?.id === id ? this.prepared.item : null
    this.prepared = null
    return prepared ?? api.question(this.author, this.held.role, id)
  }

  /** The next unjudged question with its first picture, so that it is there when it is wanted. */
  private prepareNext(): void {
    const next = this.items[nextOpen(this.items, this.place, 1)]
    if (!next || next.id === this.item?.id) return
    const item = api.question(this.author, this.held.role, next.id)
    item.then(({ id, pictures }) => { if (pictures.length) new Image().src = api.questionPicture(id, 0) }, () => (this.prepared = null))
    this.prepared = { id: next.id, item }
  }
}

export const questionReview = new QuestionReview()
