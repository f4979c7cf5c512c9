/** Short words at the foot of the screen, and the state of the connection. */

import type { Trouble } from '../lib/queue'

export const KINDS = ['conflict', 'error', 'info'] as const
export type Kind = (typeof KINDS)[number]

class Messages {
  /** One of each kind: news that comes late must not cover a mistake or a conflict that nobody has read yet. */
  current = $state<Partial<Record<Kind, string>>>({})
  pending = $state(0)
  trouble = $state<Trouble | null>(null)
  /** Edits that the server did not take, as it said: they stay until somebody has read them. */
  refused = $state.raw<string[]>([])
  private timers: Partial<Record<Kind, number>> = {}

  info(text: string): void {
    this.show('info', text, 4000)
  }

  error(text: string): void {
    this.show('error', text, 12_000)
  }

  /** Stays until it is closed: somebody's work is concerned. */
  conflict(text: string): void {
    this.show('conflict', text, 0)
  }

  /** An edit that waited for the server and was not taken: it is lost unless somebody makes it again. */
  lost(text: string): void {
    this.refused = [...this.refused, text]
  }

  forgetRefused(): void {
    this.refused = []
  }

  close(kind: Kind): void {
    delete this.current[kind]
  }

  /** Close this one, if it is still there: what it asked for was done. */
  forget(text: string): void {
    for (const kind of KINDS) if (this.current[kind] === text) this.close(kind)
  }

  private show(kind: Kind, text: string, milliseconds: number): void {
    window.clearTimeout(this.timers[kind])
    this.current[kind] = text
    if (milliseconds) this.timers[kind] = window.setTimeout(() => this.close(kind), milliseconds)
  }
}

export const messages = new Messages()
