import { expect, it, vi } from 'vitest'

vi.stubGlobal('navigator', { language: 'en' })
const { Refused } = await import('../src/lib/queue')
const { describeError } = await import('../src/text/errors')
const { language, t } = await import('../src/text/i18n.svelte')

it('translates the code of an error, whatever its sentence says', () => {
  const refused = new Refused('undo: nothing of amy', 400, '', 'nothing-to-undo')
  expect(describeError(refused).split('\n')).toEqual(['There is nothing of yours to undo.', 'undo: nothing of amy'])
  language.code = 'zh'
  expect(describeError(refused).split('\n')).toEqual(['没有可撤销的编辑。', 'undo: nothing of amy'])
  language.code = 'en'
})

it('keeps the sentence of an error without a known code', () => {
  expect(describeError(new Refused('something else', 400))).toBe('something else')
  expect(describeError(new Refused('something else', 400, '', 'constructor'))).toBe('something else')
  expect(describeError(new Error('a.jsonc: found 3'), 'toldSchema').split('\n')[0]).toBe(t('toldSchema'))
})

it('takes the word that goes with a number', () => {
  expect(t('trackStats', { count: 1, first: 0, last: 0, missing: 0 })).toMatch(/^1 frame,/)
  expect(t('trackStats', { count: 2, first: 0, last: 1, missing: 0 })).toMatch(/^2 frames,/)
})
