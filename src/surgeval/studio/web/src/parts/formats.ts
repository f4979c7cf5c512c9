/** What formats are called; one that has no text goes by its own name. */

import { t, type TextKey } from '../text/i18n.svelte'

const TEXTS: Record<string, TextKey> = {
  labelme: 'format_labelme', coco: 'format_coco', yolo5: 'format_yolo5', yolo8: 'format_yolo8', cvat: 'format_cvat',
  cholect50: 'format_cholect50',
}

export function formatText(name: string): string {
  const key = TEXTS[name]
  return key ? t(key) : name
}
