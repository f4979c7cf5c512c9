import { expect, it, vi } from 'vitest'

vi.stubGlobal('navigator', { language: 'en' })
const { t } = await import('../src/text/i18n.svelte')
const { told } = await import('../src/text/told')

it('puts what a sentence of the server means before it', () => {
  const sentence = 'segments: found room for 0 of 200 frames in 60, expected room for 5'
  expect(told(sentence).split('\n')).toEqual([t('toldSegments'), sentence])
  expect(told('something else')).toBe('something else')
  expect(told('a.jsonc: found 3', 'toldSchema').split('\n')[0]).toBe(t('toldSchema'))
})

it('takes the word that goes with a number', () => {
  expect(t('trackStats', { count: 1, first: 0, last: 0, missing: 0 })).toMatch(/^1 frame,/)
  expect(t('trackStats', { count: 2, first: 0, last: 1, missing: 0 })).toMatch(/^2 frames,/)
})
