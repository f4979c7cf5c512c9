import { describe, expect, it } from 'vitest'
import { lossOf } from '../src/lib/losses'
import { en } from '../src/text/en'
import { zh } from '../src/text/zh'

describe('what is lost', () => {
  it('is known by its sentence, with its count and name', () => {
    expect(lossOf('12 proposals that nobody has accepted are left out')).toEqual({ key: 'loss_proposals', parts: { n: '12' } })
    expect(lossOf("attribute 'side's' of 3 instances is not kept")).toEqual({ key: 'loss_attribute', parts: { n: '3', name: "side's" } })
  })

  it('is shown as it came where there is no text for it', () => {
    expect(lossOf('something new of 3 instances')).toBeNull()
  })

  it('is said with the same parts in every language', () => {
    const parts = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? '').sort()
    for (const key of Object.keys(en).filter((one) => one.startsWith('loss_')) as (keyof typeof en)[]) {
      expect(parts(zh[key]), key).toEqual(parts(en[key]))
    }
  })
})
