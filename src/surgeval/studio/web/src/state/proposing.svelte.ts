/** The server's job of looking for proposals: it goes on while this page is closed, so it is asked for. */

import { api } from '../api'
import type { Job } from '../lib/answers'
import { Latest } from '../lib/latest'
import { t } from '../text/i18n.svelte'
import { messages } from './messages.svelte'

const PAUSE = 400 // milliseconds

class Proposing {
  job = $state.raw<Job | null>(null)
  running = $derived(this.job?.standing === 'running')
  share = $derived(this.job?.total ? this.job.done / this.job.total : 0)
  private timer = 0
  private readonly asked = new Latest()
  /** The job that is being waited for, and since when. */
  private waiting = { id: '', since: 0 }

  /** Ask how far it is, and go on asking until it has ended. */
  async look(): Promise<void> {
    window.clearTimeout(this.timer)
    const latest = this.asked.ask()
    const found = await api.proposing().catch(() => ({ job: this.job }))
    if (!latest()) return
    const before = this.job
    this.job = found.job
    if (this.running) this.timer = window.setTimeout(() => void this.look(), PAUSE)
    else if (before?.standing === 'running' && this.job) this.tell(this.job)
  }

  async begin(asked: Record<string, unknown>): Promise<void> {
    const { job } = await api.beginProposing(asked)
    this.asked.ask() // an answer on its way is about the job before
    this.job = job
    await this.look()
  }

  async end(): Promise<void> {
    if (this.job) await api.endProposing(this.job.id).catch(() => null)
    await this.look()
  }

  text(job: Job): string {
    const parts = { name: job.what.source, found: job.told.found ?? 0, done: job.done, total: job.total }
    if (job.standing === 'running' && job.done) return t('proposeRunning', parts)
    if (job.standing === 'running') return t('proposeStarting', { ...parts, seconds: this.waited(job) })
    if (job.standing === 'stopped') return t('proposeStopped', parts)
    return job.standing === 'done' ? t('proposeDone', parts) : job.error
  }

  private waited(job: Job): number {
    if (this.waiting.id !== job.id) this.waiting = { id: job.id, since: Date.now() }
    return Math.round((Date.now() - this.waiting.since) / 1000)
  }

  private tell(job: Job): void {
    if (job.standing === 'failed') messages.error(this.text(job))
    else messages.info(this.text(job))
  }
}

export const proposing = new Proposing()
