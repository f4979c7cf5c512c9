/** Playing: by the clock, but never past a frame that is not decoded yet. */

import { nextFrame } from '../lib/spans'
import { hold, selectedSpan } from './spans.svelte'
import { studio } from './studio.svelte'

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8]

class Playback {
  playing = $state(false)
  speed = $state(1)
  private turn = 0

  toggle(): void {
    if (this.playing) this.stop()
    else void this.run()
  }

  stop(): void {
    this.playing = false
    this.turn += 1
    void hold.end()
  }

  faster(by: number): void {
    const at = SPEEDS.indexOf(this.speed) + by
    this.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))] as number
  }

  private async run(): Promise<void> {
    const turn = ++this.turn
    this.playing = true
    let due = performance.now()
    while (this.playing && turn === this.turn && studio.video) {
      const each = 1000 / (studio.video.fps * this.speed)
      due = Math.max(due + each, performance.now() - each)
      await new Promise((done) => setTimeout(done, Math.max(0, due - performance.now())))
      if (!this.playing || turn !== this.turn) return
      const late = Math.max(0, Math.floor((performance.now() - due) / each))
      const next = nextFrame(studio.frame, 1 + late, studio.video.frames, selectedSpan())
      if (next === null) return this.stop()
      await studio.go(next)
    }
  }
}

export const playback = new Playback()
