/** Ways to a frame that has to be asked for first: what is typed meanwhile is meant for where they lead. */

import { messages } from './messages.svelte'
import { selection } from './selection.svelte'
import { studio } from './studio.svelte'

class Journeys {
  private count = 0
  private last: Promise<void> = Promise.resolve()

  get underway(): boolean {
    return this.count > 0
  }

  /** One after the other: the next begins where the last has led. */
  begin(way: () => Promise<void>): Promise<void> {
    this.count += 1
    return (this.last = this.last
      .then(way)
      .catch((error: Error) => messages.error(error.message))
      .finally(() => (this.count -= 1)))
  }

  /** Until the frame that was asked for last is on the screen. */
  async arrived(): Promise<void> {
    while (this.underway) await this.last
    await studio.arriving
  }
}

export const journeys = new Journeys()

/** To a frame with one thing of it selected, unless somebody has gone elsewhere meanwhile. */
export async function goTo(frame: number, id: string | null, video = studio.video?.id): Promise<void> {
  const other = studio.project?.videos.find((one) => one.id === video)
  if (!other) return
  if (other.id === studio.video?.id) await studio.go(frame)
  else await studio.open(other, frame)
  const one = id ? studio.blocks?.find(id) : undefined
  if (one && one.frame === studio.frame && studio.video?.id === video) selection.only(one)
}
