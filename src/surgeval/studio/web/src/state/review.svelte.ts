/** Who has seen which frames, in which round. */

import { api } from '../api'
import { InOrder } from '../lib/latest'
import { nextUnseen, seenBy, seenCount, withMark, type Reviews, type Round } from '../lib/study'
import { t } from '../text/i18n.svelte'
import { journeys } from './journeys'
import { messages } from './messages.svelte'
import { draft } from './spans.svelte'
import { studio } from './studio.svelte'

class Review {
  rounds = $state.raw<Round[]>([])
  reviews = $state.raw<Reviews | null>(null)
  /** The video they are of. */
  private of = ''
  /** The round at hand: the one that was chosen, else the last. */
  private chosen = $state(0)
  private readonly asked = { rounds: new InOrder(), reviews: new InOrder() }
  round = $derived(this.rounds.find((one) => one.number === this.chosen) ?? this.rounds.at(-1) ?? null)
  me = $derived(studio.project?.author ?? '')
  /** Of this frame: by whom it was seen, of how many. */
  seen = $derived(seenBy(this.reviews?.runs ?? [], studio.shown))
  /** Whose marks count: those whom the round names, else everyone who marks. */
  people = $derived(this.round?.reviewers.length ? this.round.reviewers : [...new Set([...(this.reviews?.reviewers ?? []), this.me])])
  /** Those who marked frames without being named. */
  others = $derived((this.reviews?.reviewers ?? []).filter((one) => !this.people.includes(one)))
  counted = $derived(this.seen.filter((one) => this.people.includes(one)).length)
  mine = $derived(this.seen.includes(this.me))
  /** Whose marks count when unreviewed things are looked for. */
  asker = $derived({ author: this.me, round: this.round?.number ?? 1 })

  constructor() {
    studio.whenStale('reviews', () => this.load())
  }

  async load(): Promise<void> {
    const video = studio.video
    if (!video || studio.blind) return
    if (this.of !== video.id) this.reviews = null
    const quiet = studio.queue.quiet()
    await this.loadRounds()
    const round = this.round?.number ?? 1
    const inOrder = this.asked.reviews.ask()
    const reviews = await api.reviews(video.id, round).catch(() => null)
    if (studio.video !== video || (this.round?.number ?? 1) !== round) return // asked for once more meanwhile
    const whole = quiet()
    if (!whole) studio.refreshLater(['reviews']) // a mark that is on its way is shown already and not in it
    if (!reviews || (!whole && this.reviews) || !inOrder()) return
    this.reviews = reviews
    this.of = video.id
  }

  private async loadRounds(): Promise<void> {
    const inOrder = this.asked.rounds.ask()
    const rounds = await api.rounds().catch(() => null)
    if (rounds && inOrder()) this.rounds = rounds
  }

  /** Who has seen what in another round: until that is known, nobody is said to have seen anything. */
  choose(number: number): void {
    this.chosen = number
    this.reviews = null
    void this.load()
  }

  async begin(title: string, reviewers: string[]): Promise<boolean> {
    const outcome = await studio.edit('round.begin', { title, reviewers })
    if (!outcome) return false
    await this.loadRounds() // it is chosen once it is one of them
    this.choose(Number(outcome.created[0]))
    return true
  }

  /** Mark the marked range, which is done with then, or this frame; a frame that is marked already loses its mark. */
  mark(): void {
    const range = draft.range ?? { first: studio.shown, last: studio.shown }
    const mark = !draft.range && this.mine ? '' : 'seen'
    const { first, last } = range
    if (draft.range) {
      draft.cancel()
      messages.info(t('stretchSeen', { first, last }))
    }
    if (mark && !this.people.includes(this.me)) messages.info(t('markApart', { person: this.me }))
    if (this.reviews) this.reviews = { ...this.reviews, runs: withMark(this.reviews.runs, this.me, first, last, mark !== '') }
    void studio.edit('frames.mark', { video: studio.video?.id, first, last, round: this.round?.number ?? 1, mark })
  }

  next(): Promise<void> {
    return journeys.begin(async (here) => {
      if (!this.reviews) await this.load() // of a video or a round that was chosen just now
      if (!here()) return
      const frame = nextUnseen(this.reviews?.runs ?? [], this.me, studio.frame, studio.video?.frames ?? 0)
      if (frame === null) messages.info(t('allSeen'))
      else void studio.go(frame)
    })
  }

  count(person: string): number {
    return seenCount(this.reviews?.runs ?? [], person)
  }
}

export const review = new Review()
