import { describe, expect, it } from 'vitest'
import { editText, Outbox, worthSending } from '../src/lib/outbox'
import type { Operation } from '../src/lib/types'

const op = (id: string, kind = 'instances.move'): Operation => ({ id, kind, payload: {}, base: 1, session: 'x' })

function store() {
  const items = new Map<string, string>()
  return {
    items,
    get length() { return items.size },
    key: (place: number) => [...items.keys()][place] ?? null,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, text: string) => void items.set(key, text),
    removeItem: (key: string) => void items.delete(key),
  }
}

describe('an edit in words', () => {
  it('says what, of what and where', () => {
    const one = (kind: string, payload: Record<string, unknown>): string => editText({ ...op('1', kind), payload })
    expect(one('span.add', { tracks: [{ group: 'tools', name: 'hook', number: 1 }], values: { target: 'liver', action: null }, first: 2, last: 5 }))
      .toBe('span.add hook · target liver · action ∅ · @ 2–5')
    expect(one('instances.add', { instances: [{ name: 'hook', frame: 3 }] })).toBe('instances.add hook · @ 3')
    expect(one('undo', {})).toBe('undo')
  })
})

describe('unsent edits', () => {
  it('of a closed tab are found by the next one, in order, and forgotten when told', () => {
    const shared = store()
    new Outbox(shared, 'op', 'old').keep([op('1'), op('2')])
    const next = new Outbox(shared, 'op', 'new')
    expect(next.left(new Set()).map((one) => one.operations.map(({ id }) => id))).toEqual([['1', '2']])
    next.forget('old')
    expect(next.left(new Set())).toEqual([])
  })
  it('of an open tab, of this tab and of another project are left alone', () => {
    const shared = store()
    new Outbox(shared, 'op', 'open').keep([op('1')])
    new Outbox(shared, 'other', 'old').keep([op('2')])
    const own = new Outbox(shared, 'op', 'own')
    own.keep([op('3')])
    expect(own.left(new Set(['open']))).toEqual([])
  })
  it('are gone once the server has them', () => {
    const shared = store()
    const own = new Outbox(shared, 'op', 'own')
    own.keep([op('1')])
    own.keep([])
    expect(shared.items.size).toBe(0)
  })
  it('that somebody else wrote there are not trusted', () => {
    const shared = store()
    shared.setItem('surgeval studio unsent: op: a', '{broken')
    shared.setItem('surgeval studio unsent: op: b', '[1, null, {"id": 3}]')
    expect(new Outbox(shared, 'op', 'own').left(new Set())).toEqual([])
  })
})

describe('an undo that was not sent', () => {
  const sent = (...kinds: string[]): string[] => worthSending(kinds.map((kind, at) => op(String(at), kind))).map(({ id }) => id)
  it('takes back what waits beside it and nothing else', () => {
    expect(sent('span.add', 'undo')).toEqual([])
    expect(sent('undo', 'span.add')).toEqual(['1'])
    expect(sent('span.add', 'undo', 'redo')).toEqual(['0'])
    expect(sent('span.add', 'setting.set', 'undo')).toEqual(['1'])
    expect(sent('redo')).toEqual([])
  })
})
