import { describe, expect, it } from 'vitest'
import { actionsByChord, chordOf, chordText, DEFAULT_KEYS, digitIndex, GROUPS, keyMap, ownKeys, remapped, type KeyPress } from '../src/lib/keys'

const press = (key: string, code: string, more: Partial<KeyPress> = {}): KeyPress => ({
  key, code, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more,
})

describe('chords', () => {
  it.each([
    [press('a', 'KeyA'), 'A'],
    [press('Z', 'KeyZ', { ctrlKey: true, shiftKey: true }), 'Ctrl+Shift+Z'],
    [press('z', 'KeyZ', { metaKey: true }), 'Ctrl+Z'],
    [press(' ', 'Space'), 'Space'],
    [press('!', 'Digit1', { shiftKey: true }), 'Shift+1'],
    [press('7', 'Numpad7'), '7'],
    [press('я', 'KeyZ', { ctrlKey: true }), 'Ctrl+Z'],
    [press('a', 'KeyQ'), 'A'],
    [press('Process', 'KeyD'), 'D'],
    [press('?', 'Slash', { shiftKey: true }), 'Shift+Slash'],
    [press('?', 'Minus', { shiftKey: true }), 'Shift+Slash'],
  ])('%o', (event, chord) => expect(chordOf(event)).toBe(chord))
  it('are none for a modifier alone', () => expect(chordOf(press('Shift', 'ShiftLeft', { shiftKey: true }))).toBeNull())
  it('read as people write them', () => {
    expect(chordText('Shift+Slash')).toBe('?')
    expect(chordText('Shift+ArrowLeft')).toBe('Shift+←')
  })
})

describe('the key map', () => {
  it('has every key once and lists every action in the help', () => {
    expect(actionsByChord(DEFAULT_KEYS).size).toBe(Object.keys(DEFAULT_KEYS).length)
    expect(Object.values(GROUPS).flat().sort()).toEqual(Object.keys(DEFAULT_KEYS).sort())
  })
  it('leaves the digits to the lists', () => {
    expect(Object.values(DEFAULT_KEYS).filter((chord) => digitIndex(chord) !== null)).toEqual([])
  })
  it('takes known actions only', () => {
    const map = keyMap({ next: 'K', nonsense: 'L', play: 7, mode: '' })
    expect(map.next).toBe('K')
    expect(map.play).toBe('Space')
    expect(map.mode).toBe('J')
    expect('nonsense' in map).toBe(false)
  })
  it('exchanges keys instead of doubling one', () => {
    const map = remapped(DEFAULT_KEYS, 'next', 'A')
    expect([map.next, map.previous]).toEqual(['A', 'D'])
    expect(ownKeys(map)).toEqual({ next: 'A', previous: 'D' })
    expect(ownKeys(remapped(map, 'next', 'D'))).toEqual({})
  })
})

describe('digits', () => {
  it.each([['1', 0], ['9', 8], ['0', 9], ['Shift+1', 10], ['Shift+0', 19], ['A', null], ['Ctrl+1', null]] as const)(
    '%s', (chord, place) => expect(digitIndex(chord)).toBe(place),
  )
})
