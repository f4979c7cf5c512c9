/** The server's sentences in the reader's language: what they mean comes first, and below it what the server said. */

import { t, type TextKey } from './i18n.svelte'

const SENTENCES: [RegExp, TextKey][] = [
  [/^segments: found room for/, 'toldSegments'],
  [/expected one instance of a track in a frame/, 'toldTwice'],
  [/^undo: found nothing/, 'toldNoUndo'],
  [/^redo: found nothing/, 'toldNoRedo'],
]

/** With `usual`, a sentence of no other kind is introduced by that text. */
export function told(message: string, usual?: TextKey): string {
  const key = SENTENCES.find(([pattern]) => pattern.test(message))?.[1] ?? usual
  return key ? `${t(key)}\n${message}` : message
}
