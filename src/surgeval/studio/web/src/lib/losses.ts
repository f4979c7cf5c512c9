/** The server's sentences on what an import or export loses, by the text that says the same in other languages. */

import type { exchange } from '../text/en/exchange'

type LossKey = Extract<keyof typeof exchange, `loss_${string}`>

const COUNT = '(?<n>\\d+)'
const SENTENCES: [string, LossKey][] = [
  [`${COUNT} proposals that nobody has accepted are left out`, 'loss_proposals'],
  [`${COUNT} problem frames are left out`, 'loss_problemFrames'],
  [`${COUNT} spans are not kept as such, only the values that they gave`, 'loss_spans'],
  [`review marks of ${COUNT} instances are not kept`, 'loss_markedInstances'],
  [`review marks of ${COUNT} frames are not kept`, 'loss_markedFrames'],
  [`attribute '(?<name>.*)' of ${COUNT} instances is not kept`, 'loss_attribute'],
  [`attribute '(?<name>.*)' of ${COUNT} frames is not kept`, 'loss_frameAttribute'],
  [`outlines of ${COUNT} instances are not kept`, 'loss_outlines'],
  [`tracks of ${COUNT} instances are not kept`, 'loss_tracks'],
  [`scores of ${COUNT} instances are not kept`, 'loss_scores'],
  [`phases of ${COUNT} frames are not kept`, 'loss_phases'],
  [`times of ${COUNT} frames are not kept`, 'loss_times'],
  [`frame rates of ${COUNT} videos are not kept`, 'loss_rates'],
  [`lengths of ${COUNT} videos are not kept`, 'loss_lengths'],
  [`${COUNT} shapes that are no boxes or outlines are not kept`, 'loss_shapes'],
  [`${COUNT} instances whose triplet is no class of the label space were left out`, 'loss_noClass'],
  [`${COUNT} instances without a whole triplet were left out`, 'loss_incomplete'],
  [`triplets of ${COUNT} instances are written but no classes of the label space, and refused on reading`, 'loss_written'],
  [`names of ${COUNT} frames became numbers of six digits`, 'loss_numbers'],
  [`underscores in the names of ${COUNT} frames became dashes`, 'loss_dashes'],
  [`${COUNT} unlabelled frames, which only an image would tell of, are not kept`, 'loss_unlabelled'],
  [`${COUNT} video frames were encoded as images`, 'loss_encoded'],
  [`images of ${COUNT} frames are not at hand`, 'loss_images'],
  [`${COUNT} instances without box or instrument are not taken`, 'loss_noBox'],
  [`masks of ${COUNT} instances are taken as boxes`, 'loss_masks'],
  [`named points of ${COUNT} instances are not taken`, 'loss_points'],
  [`pictures inside ${COUNT} labelme files \\(imageData\\) are not kept`, 'loss_pictures'],
]
const PATTERNS = SENTENCES.map(([pattern, key]): [RegExp, LossKey] => [new RegExp(`^${pattern}$`, 's'), key])

/** The text and its parts; null for a sentence that has none, which is then shown as it came. */
export function lossOf(sentence: string): { key: LossKey; parts: Record<string, string> } | null {
  for (const [pattern, key] of PATTERNS) {
    const found = pattern.exec(sentence)
    if (found) return { key, parts: { ...found.groups } }
  }
  return null
}
