import { describe, expect, it } from 'vitest'
import { OperationQueue, Refused, sessionName, type QueueNews } from '../src/lib/queue'
import type { Operation, Outcome } from '../src/lib/types'

const outcome = (operation: Operation): Outcome => ({
  version: 7, kind: operation.kind, changed: 1, skipped: 0, absent: 0, created: [], repeated: false,
})

function queueOf(answers: ((operation: Operation) => Promise<Outcome>)[]) {
  const sent: Operation[] = []
  const news: QueueNews[] = []
  const waits: number[] = []
  const wire = {
    send: (operation: Operation): Promise<Outcome> => {
      sent.push(operation)
      const answer = answers.shift() ?? ((one: Operation) => Promise.resolve(outcome(one)))
      return answer(operation)
    },
    wait: (ms: number): Promise<void> => {
      waits.push(ms)
      return Promise.resolve()
    },
  }
  const queue = new OperationQueue(wire, 'tab', () => 41, (one) => news.push(one))
  return { queue, sent, news, waits }
}
const broken = (): Promise<Outcome> => Promise.reject(new TypeError('Failed to fetch'))
const refused = (status: number) => (): Promise<Outcome> => Promise.reject(new Refused('found X, expected Y', status))

describe('the queue', () => {
  it('sends one after the other, each with its own id, base and session', async () => {
    const { queue, sent } = queueOf([])
    await Promise.all([queue.add('instances.delete', { ids: ['a'] }), queue.add('undo', {})])
    expect(sent.map((one) => [one.id, one.kind, one.base, one.session])).toEqual([
      ['tab.1', 'instances.delete', 41, 'tab'],
      ['tab.2', 'undo', 41, 'tab'],
    ])
  })
  it('tries again with the same id, ever more slowly, and tells', async () => {
    const { queue, sent, news, waits } = queueOf([broken, broken, refused(503), refused(429)])
    await queue.add('undo', {})
    expect(new Set(sent.map((one) => one.id)).size).toBe(1)
    expect(sent).toHaveLength(5)
    expect(waits).toEqual([300, 600, 1200, 2500])
    expect(news.some((one) => one.trouble?.kind === 'offline')).toBe(true)
    expect(news.at(-1)).toEqual({ pending: 0, trouble: null })
  })
  it('tells of a refused edit whether it had waited: in the queue, behind another one, or in a closed tab', async () => {
    const { queue } = queueOf([refused(400), broken, refused(400), refused(400), refused(400)])
    const error = (answer: Promise<Outcome>): Promise<string | null> => answer.then(() => '', (one: Refused) => one.waited?.id ?? null)
    expect(await error(queue.add('span.add', {}))).toBeNull()
    const both = [error(queue.add('span.add', {})), error(queue.add('undo', {}))]
    expect(await Promise.all(both)).toEqual(['tab.2', 'tab.3'])
    expect(await error(queue.again(queue.make('undo', {})))).toBe('tab.4')
  })
  it('keeps an edit that a restarted server refuses until this browser has the new token', async () => {
    const { queue, sent, news } = queueOf([refused(401), refused(401)])
    await queue.add('undo', {})
    expect(sent).toHaveLength(3)
    expect(news.some((one) => one.trouble?.kind === 'token')).toBe(true)
  })
  it('keeps an edit that the disk did not take', async () => {
    const { queue, sent, news } = queueOf([refused(507)])
    await queue.add('undo', {})
    expect(sent).toHaveLength(2)
    expect(news.some((one) => one.trouble?.kind === 'disk')).toBe(true)
  })
  it.each([400, 404, 409, 413])('drops what is refused with %i and goes on with the next', async (status) => {
    const { queue, sent } = queueOf([refused(status)])
    const first = queue.add('span.add', {})
    const second = queue.add('undo', {})
    await expect(first).rejects.toMatchObject({ status, message: 'found X, expected Y' })
    await expect(second).resolves.toMatchObject({ kind: 'undo' })
    expect(sent).toHaveLength(2)
    expect(queue.pending).toBe(0)
  })
  it('names tabs so that none is like another', () => {
    const names = new Set(Array.from({ length: 100 }, sessionName))
    expect(names.size).toBe(100)
    for (const name of names) expect(name).toMatch(/^[0-9a-z]{18}$/)
  })
})
