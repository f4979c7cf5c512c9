/** The number that a newly drawn thing gets: that of the same instrument in a frame close by, else one that is free. */

import { overlap } from './geometry'
import type { ClassName } from './schema'
import type { Annotation, Box } from './types'

/** Frames before and after in which an instrument is looked for. */
export const NEAR = 2

/**
 * `near` is what the frames around hold, the nearest frame first; `used` are the numbers of the class in the whole video.
 * A track goes on where it lies over the new box or at most as far from it as the larger of the two is long. A number
 * that means something else elsewhere in the video is never taken.
 */
export function numberFor(of: ClassName, box: Box, here: Annotation[], near: Annotation[][], used: Iterable<number>): number {
  const same = (one: Annotation): boolean => one.group === of.group && one.name === of.name
  const taken = new Set(here.filter(same).map((one) => one.track))
  for (const frame of near) {
    const found = frame
      .filter((one) => same(one) && one.track !== null && !taken.has(one.track) && away(one.box, box) <= 1)
      .sort((a, b) => overlap(b.box, box) - overlap(a.box, box) || away(a.box, box) - away(b.box, box))[0]
    if (found?.track != null) return found.track
  }
  const numbers = new Set([...used, ...taken])
  let number = 1
  while (numbers.has(number)) number += 1
  return number
}

/** How far two boxes' middles are apart, as a part of the longer diagonal. */
function away(a: Box, b: Box): number {
  const [dx, dy] = [a[0] + a[2] / 2 - b[0] - b[2] / 2, a[1] + a[3] / 2 - b[1] - b[3] / 2]
  return Math.hypot(dx, dy) / Math.max(Math.hypot(a[2], a[3]), Math.hypot(b[2], b[3]), 1)
}
