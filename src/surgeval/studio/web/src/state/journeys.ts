/** Ways to a frame that has to be asked for first: what is typed meanwhile is meant for where they lead. */

import { frameAtTime, parseFrame, parseSeconds } from '../lib/spans'
import { t } from '../text/i18n.svelte'
import { messages } from './messages.svelte'
import { playback } from './playback.svelte'
import { selection } from './selection.svelte'
import { studio } from './studio.svelte'

class Journeys {
  private count = 0
  private last: Promise<void> = Promise.resolve()

  get underway(): boolean {
    return this.count > 0
  }

  /**
   * One after the other: the next begins where the last has led. A way asks `here` whether somebody has gone elsewhere
   * by hand since it began, as its answer is about where it began.
   */
  begin(way: (here: () => boolean) => Promise<void>): Promise<void> {
    this.count += 1
    return (this.last = this.last
      .then(() => way(stillHere()))
      .catch((error: Error) => messages.error(error.message))
      .finally(() => (this.count -= 1)))
  }

  /** Until it is known which frame is meant. */
  async known(): Promise<void> {
    while (this.underway) await this.last
  }

  /** Until the frame that was asked for last is on the screen, or did not come. */
  async arrived(): Promise<void> {
    await this.known()
    await Promise.allSettled([studio.arriving])
  }
}

export const journeys = new Journeys()

/** Playing goes on by itself: that is not going elsewhere. */
function stillHere(): () => boolean {
  const { video, frame } = studio
  return () => studio.video?.id === video?.id && (studio.frame === frame || playback.playing)
}

/** To a frame with one thing of it selected, unless somebody has gone elsewhere meanwhile. */
export async function goTo(frame: number, id: string | null, video = studio.video?.id): Promise<void> {
  const other = studio.project?.videos.find((one) => one.id === video)
  if (!other) return
  if (other.id === studio.video?.id) await studio.go(frame)
  else await studio.open(other, frame)
  const one = id ? studio.blocks?.find(id) : undefined
  if (one && one.frame === studio.frame && studio.video?.id === video) selection.only(one)
}

/** Use a frame as it was typed, in the video it was typed for; tells where that has no such frame. */
export function withTyped(text: string, use: (frame: number) => void): Promise<void> {
  return journeys.begin(async () => {
    const id = studio.video?.id
    const frame = await typedFrame(text)
    if (studio.video?.id !== id) return
    const badFrame = t('badFrame', { last: (studio.video?.frames ?? 1) - 1 })
    if (frame === null) return messages.error(badFrame)
    messages.forget(badFrame)
    use(frame)
  })
}

/** Its number, or a time, by the frames' own times where they have some. */
async function typedFrame(text: string): Promise<number | null> {
  const { video, blocks } = studio
  if (!video || !blocks) return null
  const seconds = parseSeconds(text.trim())
  if (seconds === null) return parseFrame(text, video.frames, video.fps)
  const begin = Math.min(video.frames - 1, Math.round(seconds * video.fps))
  const time = async (frame: number): Promise<number> => {
    await blocks.load(frame)
    return blocks.time(frame) ?? frame / video.fps
  }
  return frameAtTime(seconds, begin, video.frames, time)
}
