/** Short words at the foot of the screen, and the state of the connection. */

export interface Message {
  kind: 'info' | 'error' | 'conflict'
  text: string
}

class Messages {
  current = $state<Message | null>(null)
  pending = $state(0)
  trouble = $state<{ kind: 'offline' | 'disk'; text: string } | null>(null)
  /** Edits that the server did not take, as it said: they stay until somebody has read them. */
  refused = $state.raw<string[]>([])
  private timer = 0

  info(text: string): void {
    this.show({ kind: 'info', text }, 4000)
  }

  error(text: string): void {
    this.show({ kind: 'error', text }, 12_000)
  }

  /** Stays until it is closed: somebody's work is concerned. */
  conflict(text: string): void {
    this.show({ kind: 'conflict', text }, 0)
  }

  /** An edit that waited for the server and was not taken: it is lost unless somebody makes it again. */
  lost(text: string): void {
    this.refused = [...this.refused, text]
  }

  forgetRefused(): void {
    this.refused = []
  }

  close(): void {
    this.current = null
  }

  private show(message: Message, milliseconds: number): void {
    window.clearTimeout(this.timer)
    this.current = message
    if (milliseconds) this.timer = window.setTimeout(() => this.close(), milliseconds)
  }
}

export const messages = new Messages()
