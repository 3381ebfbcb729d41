// Assertions for what cannot happen. They stay on in production: a broken invariant of credit or
// of disk accounting must stop the work it concerns, not corrupt it.

export class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure'
}

/** Throws {@link AssertionFailure} unless `condition` holds. `what` says which rule was broken. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new AssertionFailure(what)
}

/** For the default of a switch over a closed union: the compiler proves that it is never reached. */
export function unreachable(value: never): never {
  throw new AssertionFailure(`unexpected value ${JSON.stringify(value)}`)
}
