/** Reviewing questions: what the server sends, and what keys mean. */

export const VERDICTS = ['correct', 'wrong', 'unclear'] as const
export type Verdict = (typeof VERDICTS)[number]
export type Role = 'review' | 'adjudicate'

export interface QueueRow {
  id: string
  /** One's own; nobody else's ever comes here. */
  verdict: Verdict | null
}

export interface Queue {
  reviewer: string
  role: Role
  items: QueueRow[]
}

export interface Judgement {
  verdict: Verdict
  answer: number | null
  comment: string
}

export interface QuestionPicture {
  time: number | null
  /** Where the clinician looks: shares of the picture. */
  look: [number, number] | null
}

export interface QuestionItem {
  id: string
  /** What the question says, as a short text: a judgement is of this. */
  content: string
  scenario: string
  skill: string
  dimension: string
  trap: 'perceptual' | 'cognitive' | null
  source: string | null
  context: Record<string, string>
  question: string
  options: string[]
  answer: number
  labels: { label: string; reason: string }[]
  gaze: string
  links: Partial<Record<'untrapped' | 'twin', string>>
  mine: Judgement | null
  said: Judgement[]
  pictures: QuestionPicture[]
  trouble: string
}

export interface AgreementTable {
  /** Questions that are left to oneself before the table is shown. */
  left: number
  rows: {
    who: string
    about: 'verdict' | 'answer'
    items: number
    same: number
    coefficient: string
    kappa: number | null
    low: number | null
    high: number | null
    note: string
  }[]
  decisions: Partial<Record<'accepted' | 'rejected' | 'disputed' | 'pending', number>>
}

export type QuestionKey =
  | 'correct' | 'wrong' | 'unclear' | 'save' | 'comment' | 'previous' | 'next' | 'previousOpen' | 'nextOpen'
  | 'pictureBack' | 'pictureOn' | 'play' | 'gaze' | 'close'

/** The terminal's letters for verdicts; the others as elsewhere in the studio. */
export const QUESTION_KEYS: Record<string, QuestionKey> = {
  C: 'correct', W: 'wrong', U: 'unclear', Enter: 'save', M: 'comment', A: 'previous', D: 'next',
  'Shift+A': 'previousOpen', 'Shift+D': 'nextOpen', ArrowLeft: 'pictureBack', ArrowRight: 'pictureOn', Space: 'play',
  G: 'gaze', Escape: 'close',
}

/** The nearest unjudged question in a direction, round and round; -1 where all are judged. */
export function nextOpen(items: readonly QueueRow[], from: number, by: 1 | -1): number {
  const count = items.length
  for (let step = 1; step <= count; step += 1) {
    const at = (((from + by * step) % count) + count) % count
    if (items[at]?.verdict === null) return at
  }
  return -1
}

export function judged(items: readonly QueueRow[]): number {
  return items.filter((row) => row.verdict !== null).length
}

export function letterOf(option: number): string {
  return String.fromCharCode(65 + option)
}
