/** Pictures, decoded before they are shown: the old frame stays until the next one is ready. */

import { pictureUrl } from '../api'

const KEPT = 32

export class Pictures {
  private readonly ready = new Map<number, Promise<HTMLImageElement>>()

  constructor(private readonly video: string) {}

  /** The decoded picture of a frame; asking again costs nothing. */
  get(frame: number): Promise<HTMLImageElement> {
    const known = this.ready.get(frame)
    if (known) {
      this.ready.delete(frame)
      this.ready.set(frame, known)
      return known
    }
    const image = new Image()
    image.alt = ''
    image.draggable = false
    image.decoding = 'sync'
    image.src = pictureUrl(this.video, frame)
    const decoded = image.decode().then(() => image)
    decoded.catch(() => this.ready.delete(frame))
    this.ready.set(frame, decoded)
    for (const old of this.ready.keys()) {
      if (this.ready.size <= KEPT) break
      this.ready.delete(old)
    }
    return decoded
  }

  /** Neighbours, mostly those in the direction of travel. */
  prefetch(frame: number, direction: number, frames: number): void {
    const ahead = [1, 2, 3, 4, 5, 6].map((step) => frame + step * (direction || 1))
    for (const wanted of [...ahead, frame - (direction || 1)]) {
      if (wanted >= 0 && wanted < frames) void this.get(wanted).catch(() => null)
    }
  }
}
