/** Answers that come in another order than they were asked for. */

/** Of different questions the last one is meant: an answer counts as long as nobody has asked another. */
export class Latest {
  private turn = 0

  /** The answer says, when it is there, whether it counts. */
  ask(): () => boolean {
    const turn = (this.turn += 1)
    return () => turn === this.turn
  }
}

/** Of one question asked again and again every answer counts, unless one that was asked for later is here already. */
export class InOrder {
  private asked = 0
  private here = 0

  ask(): () => boolean {
    const turn = (this.asked += 1)
    return () => {
      if (turn < this.here) return false
      this.here = turn
      return true
    }
  }
}
