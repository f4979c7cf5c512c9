import { describe, expect, it } from 'vitest'
import { en } from '../src/text/en'
import { zh } from '../src/text/zh'

describe('catalogues', () => {
  it('name the same things in every text', () => {
    const names = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1] as string).sort()
    for (const [key, text] of Object.entries(en)) {
      expect(names(zh[key as keyof typeof en]), key).toEqual(names(text))
      expect(zh[key as keyof typeof en].trim(), key).not.toBe('')
    }
  })
})
