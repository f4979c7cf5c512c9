import { describe, expect, it } from 'vitest'
import { DEFAULT_KEYS } from '../src/lib/keys'
import { judged, letterOf, nextOpen, QUESTION_KEYS, VERDICTS, type QueueRow } from '../src/lib/questions'

const rows = (...verdicts: (QueueRow['verdict'])[]): QueueRow[] => verdicts.map((verdict, n) => ({ id: `q${n}`, verdict }))

describe('the list of questions', () => {
  it('goes on to the next unjudged one, round and round', () => {
    const items = rows(null, 'correct', 'wrong', null)
    expect(nextOpen(items, 0, 1)).toBe(3)
    expect(nextOpen(items, 3, 1)).toBe(0)
    expect(nextOpen(items, 0, -1)).toBe(3)
    expect(nextOpen(items, -1, 1)).toBe(0)
  })
  it('says where nothing is left, or nothing was', () => {
    expect(nextOpen(rows('correct', 'unclear'), 0, 1)).toBe(-1)
    expect(nextOpen([], 0, 1)).toBe(-1)
    expect(judged(rows('correct', null, 'unclear'))).toBe(2)
  })
  it('comes back to the one at hand where it is the last', () => {
    expect(nextOpen(rows('correct', null), 1, 1)).toBe(1)
  })
})

describe('the keys of questions', () => {
  it('are the first letters of the verdicts, as on the terminal', () => {
    for (const verdict of VERDICTS) expect(QUESTION_KEYS[verdict[0]?.toUpperCase() ?? '']).toBe(verdict)
  })
  it('step with the keys that step through frames', () => {
    expect(QUESTION_KEYS[DEFAULT_KEYS.previous]).toBe('previous')
    expect(QUESTION_KEYS[DEFAULT_KEYS.next]).toBe('next')
  })
  it('letter the options', () => {
    expect([0, 7].map(letterOf)).toEqual(['A', 'H'])
  })
})
