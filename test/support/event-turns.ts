// Lets one step after another run, each with everything after it that Node itself has queued: ticks and
// microtasks run to their end between two immediates, so a turn of the real loop serves many steps.

/** `again`: as soon as nothing is queued. `wait`: not before the next turn of the real loop. */
export type StepOutcome = 'again' | 'wait' | 'over'

/** A turn with its poll costs about what four small steps do; more than this gains nothing. */
const stepsPerTurnMax = 32

// As Node has it: what libraries queue is counted, and these are not.
const { setImmediate: queue } = globalThis

/** Until `step` says that it is over. It is told whether the turn is a new one. */
export function runSteps(step: (isNewTurn: boolean) => StepOutcome): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = 0
    let ran = 0
    let isWaiting = true
    let isNewTurn = true
    let isOver = false
    const run = () => {
      left -= 1
      if (!isOver && !isWaiting) {
        try {
          const outcome = step(isNewTurn)
          isNewTurn = false
          ran += 1
          isWaiting = outcome === 'wait'
          isOver = outcome === 'over'
          if (isOver) resolve()
        } catch (error) {
          isOver = true
          reject(error)
        }
      }
      if (left === 0 && !isOver) nextTurn()
    }
    const nextTurn = () => {
      isWaiting = false
      isNewTurn = true
      // About as many as the last turn was good for.
      left = Math.max(1, Math.min(2 * ran, stepsPerTurnMax))
      ran = 0
      for (let count = left; count > 0; count -= 1) queue(run)
    }
    nextTurn()
  })
}
