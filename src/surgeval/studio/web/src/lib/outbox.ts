/**
 * Edits that the server has not acknowledged, kept in the browser until it has: a closed tab leaves them behind, and the
 * next one offers to send them. They keep their ids, so one that did arrive is not applied twice.
 */

import type { Operation } from './types'

const MOST = 500_000 // characters kept of a tab; beyond that closing it only warns

export interface Left {
  session: string
  operations: Operation[]
}

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>

export class Outbox {
  private readonly prefix: string

  constructor(
    private readonly store: Store,
    project: string,
    private readonly session: string,
  ) {
    this.prefix = `surgeval studio unsent: ${project}: `
  }

  /** What this tab still has to send; none empties its place. */
  keep(operations: Operation[]): void {
    const own = this.prefix + this.session
    const text = operations.length ? JSON.stringify(operations) : ''
    try {
      if (text && text.length <= MOST) this.store.setItem(own, text)
      else this.store.removeItem(own)
    } catch {
      this.store.removeItem(own) // the browser's store is full: an old list would be a wrong one
    }
  }

  /** What closed tabs left behind, by tab. */
  left(open: Set<string>): Left[] {
    return this.others()
      .filter((session) => !open.has(session))
      .map((session) => ({ session, operations: worthSending(operationsIn(this.store.getItem(this.prefix + session))) }))
      .filter(({ operations }) => operations.length)
  }

  forget(session: string): void {
    this.store.removeItem(this.prefix + session)
  }

  private others(): string[] {
    const keys = Array.from({ length: this.store.length }, (_, place) => this.store.key(place) ?? '')
    const sessions = keys.filter((key) => key.startsWith(this.prefix)).map((key) => key.slice(this.prefix.length))
    return sessions.filter((session) => session !== this.session).sort()
  }
}

/**
 * An undo is meant for what was last stored when it was pressed. Sent later it would take back something else, so it only
 * takes back what waits beside it.
 */
export function worthSending(operations: Operation[]): Operation[] {
  let done: Operation[] = []
  let undone: Operation[] = []
  for (const one of operations) {
    if (one.kind === 'undo') {
      const last = done.findLast(({ kind }) => kind !== 'setting.set')
      if (last) [done, undone] = [done.filter((other) => other !== last), [...undone, last]]
    } else if (one.kind === 'redo') {
      const last = undone.at(-1)
      if (last) [done, undone] = [[...done, last], undone.slice(0, -1)]
    } else [done, undone] = [[...done, one], one.kind === 'setting.set' ? undone : []]
  }
  return done
}

/** An edit in words and numbers, for somebody who has to make it again: what it said, of what, where. */
export function editText({ kind, payload }: Operation): string {
  const given = payload as Record<string, unknown>
  const first = (Array.isArray(given.instances) ? given.instances[0] : given) as Record<string, unknown>
  const named = [given.tracks, given.instances].flatMap((list) => (Array.isArray(list) ? list : [first])) as Record<string, unknown>[]
  const names = [...new Set(named.flatMap((one) => (typeof one.name === 'string' ? [one.name] : [])))]
  const values = Object.entries((given.values ?? {}) as Record<string, unknown>).map(([name, value]) => `${name} ${value ?? '∅'}`)
  const frames = [first.frame, given.first, given.last].filter((one) => typeof one === 'number').join('–')
  const parts = [...names, ...values, frames && `@ ${frames}`].filter(Boolean)
  return [kind, ...(parts.length ? [parts.join(' · ').slice(0, 200)] : [])].join(' ')
}

function operationsIn(text: string | null): Operation[] {
  try {
    const found: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(found) ? found.filter(isOperation) : []
  } catch {
    return []
  }
}

function isOperation(one: unknown): one is Operation {
  const given = (typeof one === 'object' && one !== null ? one : {}) as Partial<Operation>
  return typeof given.id === 'string' && typeof given.kind === 'string' && typeof given.payload === 'object'
}
