// All seams in one parameter, so that constructors take one thing and the simulator replaces one.

import type { Clock } from './clock.ts'
import type { Compute } from './compute.ts'
import type { Disk } from './disk.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'

export interface World {
  readonly clock: Clock
  readonly random: Random
  readonly network: Network
  readonly disk: Disk
  readonly compute: Compute
}
