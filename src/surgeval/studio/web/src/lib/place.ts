/** Where somebody was in a project when the page was left: this browser remembers it, one place for each sitting. */

export interface Place {
  video: string
  frame: number
}

const keyOf = (sitting: string): string => `surgeval studio place: ${sitting}`

/** Null where nothing is remembered, or something that no studio wrote. */
export function placeOf(store: Pick<Storage, 'getItem'>, sitting: string): Place | null {
  try {
    const place = JSON.parse(store.getItem(keyOf(sitting)) ?? 'null') as { video?: unknown; frame?: unknown } | null
    return typeof place?.video === 'string' && typeof place.frame === 'number' ? { video: place.video, frame: place.frame } : null
  } catch {
    return null
  }
}

export function rememberPlace(store: Pick<Storage, 'setItem'>, sitting: string, place: Place): void {
  store.setItem(keyOf(sitting), JSON.stringify(place))
}
