/** Errors in the reader's language: the translation of their code, and below it the server's sentence. */

import { Refused } from '../lib/queue'
import { t, type TextKey } from './i18n.svelte'

const TEXTS = new Map<string, TextKey>([
  ['segments-too-long', 'toldSegments'],
  ['track-twice-in-frame', 'toldTwice'],
  ['nothing-to-undo', 'toldNoUndo'],
  ['nothing-to-redo', 'toldNoRedo'],
])

/** `usual` is the text of an error whose code has none; without it there is only the server's sentence. */
export function describeError(error: Error, usual?: TextKey): string {
  const refused = error instanceof Refused ? error : null
  const key = TEXTS.get(refused?.code ?? '') ?? usual
  return key ? `${t(key, refused?.parts)}\n${error.message}` : error.message
}
