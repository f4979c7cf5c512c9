import { expect, test } from 'vitest'
import { InOrder, Latest } from '../src/lib/latest'

test('the answer to a question counts until another one is asked, in whatever order answers come', () => {
  const questions = new Latest()
  const first = questions.ask()
  expect(first()).toBe(true)
  const second = questions.ask()
  expect([second(), first()]).toEqual([true, false])
})

test('of one question an answer counts unless a later one is here already', () => {
  const question = new InOrder()
  const [first, second, third] = [question.ask(), question.ask(), question.ask()]
  expect([first(), third(), second(), third()]).toEqual([true, true, false, true])
})
