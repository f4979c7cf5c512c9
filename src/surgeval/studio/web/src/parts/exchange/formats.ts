/** What formats are called and what they lose; what has no text is shown as the server calls it. */

import { lossOf } from '../../lib/losses'
import { t, type TextKey } from '../../text/i18n.svelte'

const TEXTS: Record<string, TextKey> = {
  labelme: 'format_labelme', coco: 'format_coco', yolo5: 'format_yolo5', yolo8: 'format_yolo8', cvat: 'format_cvat',
  cholect50: 'format_cholect50',
}

export function formatText(name: string): string {
  const key = TEXTS[name]
  return key ? t(key) : name
}

export function lossText(sentence: string): string {
  const found = lossOf(sentence)
  return found ? t(found.key, found.parts) : sentence
}
