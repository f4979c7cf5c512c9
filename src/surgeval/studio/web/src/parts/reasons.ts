import { t, type TextKey } from '../text/i18n.svelte'

/** Why a frame is a problem: stored in English, shown in the language at hand. */
export const REASONS: Record<string, TextKey> = {
  'lens cleaning': 'reasonLens',
  exchange: 'reasonExchange',
  'camera away': 'reasonAway',
  'extreme light': 'reasonLight',
  smoke: 'reasonSmoke',
  other: 'reasonOther',
}

export function reasonText(reason: string): string {
  const key = REASONS[reason]
  return key ? t(key) : reason
}
