import { expect, it } from 'vitest'
import { LISTS, listsOf, touchesFrames, touchesProject } from '../src/lib/needs'

it.each([
  ['instances.move', []],
  ['instances.add', ['presence']],
  ['proposals.reject', ['presence']],
  ['span.edges', ['spans', 'image']],
  ['image.values', ['image']],
  ['track.swap', ['presence', 'spans']],
  ['frames.flag', ['flags']],
  ['frames.mark', ['reviews']],
  ['round.begin', ['reviews']],
  ['study.answer', ['studies']],
  ['study.decide', ['presence', 'studies']],
  ['undo', LISTS],
  ['something.new', LISTS],
] as const)('%s', (kind, lists) => expect(listsOf(kind)).toEqual(lists))

it('reads the schema again where it may have changed', () => {
  expect(['schema.set', 'undo', 'redo', ''].every(touchesProject)).toBe(true)
  expect(['span.add', 'frames.flag', 'instances.add'].some(touchesProject)).toBe(false)
})

it('fetches whole-frame values again only where they may have changed', () => {
  expect(['image.values', 'span.add', 'undo', ''].map(touchesFrames)).toEqual([true, true, true, true])
  expect(['instances.add', 'track.swap', 'frames.flag'].map(touchesFrames)).toEqual([false, false, false])
})
