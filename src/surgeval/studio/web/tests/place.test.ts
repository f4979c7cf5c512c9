import { expect, test } from 'vitest'
import { placeOf, rememberPlace } from '../src/lib/place'

function store(): { getItem(key: string): string | null; setItem(key: string, value: string): void } {
  const kept = new Map<string, string>()
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) }
}

test('each sitting has its own place', () => {
  const kept = store()
  rememberPlace(kept, 'op', { video: 'V1', frame: 7 })
  rememberPlace(kept, 'op (study, amy)', { video: 'V2', frame: 9 })
  expect(placeOf(kept, 'op')).toEqual({ video: 'V1', frame: 7 })
  expect(placeOf(kept, 'another')).toBeNull()
})

test.each(['{', 'null', '7', '{"video": 1, "frame": 2}', '{"video": "V1"}'])('what no studio wrote is no place: %s', (text) => {
  expect(placeOf({ getItem: () => text }, 'op')).toBeNull()
})
