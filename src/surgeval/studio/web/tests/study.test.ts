import { expect, it } from 'vitest'
import { kappaText, namesOf, nextOpen, nextUnseen, seenBy, seenCount, tableCsv, withMark, type Results, type SeenRun } from '../src/lib/study'

const runs: SeenRun[] = [[0, 4, ['amy']], [5, 5, ['amy', 'ben']], [8, 9, ['ben']]]

it('says who has seen a frame', () => {
  expect([0, 4, 5, 6, 9, 10].map((frame) => seenBy(runs, frame).length)).toEqual([1, 1, 2, 0, 1, 0])
  expect([seenCount(runs, 'amy'), seenCount(runs, 'ben'), seenCount(runs, 'eve')]).toEqual([6, 3, 0])
})

it('marks stretches as the server would', () => {
  const frames = 30
  let state = 7
  const chance = (below: number): number => (state = (state * 48271) % 2147483647) % below
  const marks = Array.from({ length: frames }, () => new Set<string>())
  let known: SeenRun[] = []
  for (let turn = 0; turn < 300; turn++) {
    const [a, b] = [chance(frames), chance(frames)].sort((x, y) => x - y) as [number, number]
    const person = ['amy', 'ben', 'eve'][chance(3)] as string
    const seen = chance(3) > 0
    known = withMark(known, person, a, b, seen)
    for (let frame = a; frame <= b; frame++) {
      if (seen) marks[frame]?.add(person)
      else marks[frame]?.delete(person)
    }
    expect(marks.map((_, frame) => seenBy(known, frame))).toEqual(marks.map((people) => [...people].sort()))
    known.slice(1).forEach(([first, , people], place) => {
      const [, last, before] = known[place] as SeenRun
      expect(first > last + 1 || people.join() !== before.join()).toBe(true)
    })
  }
})

it.each([
  ['amy', 0, 6], ['amy', 9, 6], ['amy', 6, 7], ['ben', 4, 6], ['ben', 7, 0], ['eve', 9, 0], ['eve', 3, 4],
] as const)('%s goes from %i on to %i', (person, from, to) => expect(nextUnseen(runs, person, from, 10)).toBe(to))

it('stays where everything is seen, and finds the frame at hand where only it is left', () => {
  expect(nextUnseen([[0, 9, ['amy']]], 'amy', 3, 10)).toBeNull()
  expect(nextUnseen([[0, 2, ['amy']], [4, 9, ['amy']]], 'amy', 3, 10)).toBe(3)
})

it('goes to the next unanswered instance and round the end', () => {
  const open: [string, number, string][] = [['A', 2, 'x'], ['A', 2, 'y'], ['B', 1, 'z']]
  expect(nextOpen(open, 'A', 2, 'x')?.[2]).toBe('y')
  expect(nextOpen(open, 'B', 1, 'z')?.[2]).toBe('x')
  expect(nextOpen(open, 'A', 3, '')?.[2]).toBe('z')
  expect(nextOpen(open, 'B', 5, '')?.[2]).toBe('x')
  expect(nextOpen([], 'A', 0, '')).toBeNull()
})

it('writes kappas and the table', () => {
  const kappa = { value: 0.8, low: 0.6, high: 0.95, reason: '' }
  const none = { value: null, low: null, high: null, reason: 'one category' }
  expect([kappaText(kappa), kappaText(none), kappaText(undefined)]).toEqual(['0.80 [0.60, 0.95]', '–', '–'])
  const results = {
    annotators: ['ada', 'b, c'], table: [{ component: 'verb', cells: { ada: kappa, 'b, c': none }, mean: 0.8 }],
    between: [{ annotators: ['ada', 'b, c'], cells: { verb: kappa } }],
  } as unknown as Results
  expect(tableCsv(results).split('\n').slice(0, 2)).toEqual([
    'component,ada,ada low,ada high,"b, c","b, c low","b, c high",mean,"ada – b, c"',
    'verb,0.8000,0.6000,0.9500,,,,0.8000,0.8000',
  ])
  expect(namesOf(' Ada, Ben，Ada\n ')).toEqual(['Ada', 'Ben'])
})
