/** Answers of a blind study: given as labels are, stored apart from them. */

import { api } from '../api'
import { trackKey, trackOf, type Annotation, type Track } from '../lib/types'
import type { Range } from '../lib/spans'
import { studio } from './studio.svelte'

/** The name under which the class stands among the values of a span being made. */
export const CLASS_SLOT = 'class'

export function answer(annotations: Annotation[], what: { name?: string; values?: Record<string, string | null> }): void {
  void studio.edit('study.answer', { ids: annotations.map((one) => one.id), ...what })
}

/** One answer for all instances of some tracks over a range. */
export async function answerOver(
  tracks: Track[], range: Range, chosen: Record<string, string | null>,
): Promise<Record<string, unknown>> {
  const wanted = new Set(tracks.map(trackKey))
  const { annotations } = await api.annotations(studio.video?.id ?? '', range.first, range.last)
  const ids = annotations.filter((one) => wanted.has(trackKey(trackOf(one)))).map((one) => one.id)
  const { [CLASS_SLOT]: name, ...values } = chosen
  return { ids, values, ...(name === undefined ? {} : { name }) }
}
