/**
 * Edits on their way to the server, one after the other. An edit keeps its id until the server has answered it, so
 * that a repeated one is applied once. A refused edit is dropped and told; anything else is tried again.
 */

import type { Operation, Outcome } from './types'

/** The server's answer to what it does not do: its sentence, and the code and parts by which the page knows it. */
export class Refused extends Error {
  /** The edit, where it waited for the server before it was refused: whoever made it is elsewhere by now. */
  waited: Operation | null = null

  constructor(
    message: string,
    readonly status: number,
    readonly who: string = '',
    readonly code: string = '',
    readonly parts: Record<string, string | number> = {},
  ) {
    super(message)
  }
}

export interface Wire {
  send(operation: Operation): Promise<Outcome>
  wait(milliseconds: number): Promise<void>
}

/** `token`: the server was started again, and takes nothing before its new address was opened in this browser. */
export interface Trouble {
  kind: 'offline' | 'disk' | 'token'
  text: string
}

export interface QueueNews {
  /** Edits that the server has not acknowledged yet. */
  pending: number
  /** Why the last try failed, while it is tried again; null when all is well. */
  trouble: Trouble | null
}

interface Entry {
  operation: Operation
  done: (outcome: Outcome) => void
  failed: (error: Refused) => void
  waited: boolean
}

const WAITS = [300, 600, 1200, 2500, 5000]

export class OperationQueue {
  private entries: Entry[] = []
  private running = false
  private count = 0
  private pushed = 0
  private troubled = false

  constructor(
    private readonly wire: Wire,
    private readonly session: string,
    private readonly base: () => number,
    private readonly tell: (news: QueueNews) => void,
    private readonly author: () => string = () => '',
  ) {}

  newId(): string {
    this.count += 1
    return `${this.session}.${this.count}`
  }

  make(kind: string, payload: Record<string, unknown>): Operation {
    const author = this.author()
    const operation = { id: this.newId(), kind, payload, base: this.base(), session: this.session }
    return author ? { ...operation, author } : operation
  }

  /** Answers when the server has stored the edit; refuses with its sentence. */
  add(kind: string, payload: Record<string, unknown>): Promise<Outcome> {
    return this.push(this.make(kind, payload), this.troubled)
  }

  /** An edit that another tab made and could not send: as it was, so that it is applied once and built on that tab's own. */
  again(operation: Operation): Promise<Outcome> {
    return this.push(operation, true)
  }

  private push(operation: Operation, waited: boolean): Promise<Outcome> {
    return new Promise((done, failed) => {
      this.pushed += 1
      this.entries.push({ operation, done, failed, waited })
      this.report(null)
      void this.run()
    })
  }

  get pending(): number {
    return this.entries.length
  }

  /** Ask something; its answer then knows of every edit, if none was on its way and none was made meanwhile. */
  quiet(): () => boolean {
    const pushed = this.pending ? -1 : this.pushed
    return () => pushed === this.pushed
  }

  get unsent(): Operation[] {
    return this.entries.map((entry) => entry.operation)
  }

  private async run(): Promise<void> {
    if (this.running) return
    this.running = true
    let tries = 0
    while (this.entries.length) {
      const entry = this.entries[0] as Entry
      try {
        const outcome = await this.wire.send(entry.operation)
        this.entries.shift()
        tries = 0
        this.troubled = false
        this.report(null)
        entry.done(outcome)
      } catch (error) {
        if (error instanceof Refused && isFinal(error.status)) {
          this.entries.shift()
          tries = 0
          this.troubled = false
          this.report(null)
          error.waited = entry.waited ? entry.operation : null
          entry.failed(error)
          continue
        }
        this.troubled = true
        for (const one of this.entries) one.waited = true
        this.report({ kind: kindOf(error), text: error instanceof Error ? error.message : '' })
        await this.wire.wait(WAITS[Math.min(tries, WAITS.length - 1)] as number)
        tries += 1
      }
    }
    this.running = false
  }

  private report(trouble: QueueNews['trouble']): void {
    this.tell({ pending: this.entries.length, trouble })
  }
}

/** Statuses that trying again would not change; after 401 it would, once this browser has the token. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && ![401, 408, 429].includes(status)
}

function kindOf(error: unknown): Trouble['kind'] {
  const status = error instanceof Refused ? error.status : 0
  if (status === 401) return 'token'
  return status === 507 || status === 503 ? 'disk' : 'offline'
}

/** A name for this tab that no other tab has; works without a secure context too. */
export function sessionName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(9))
  return Array.from(bytes, (byte) => byte.toString(36).padStart(2, '0')).join('')
}
