// The world as it is: every seam with its one real implementation.

import { realClock } from './clock.ts'
import { realRandom } from './random.ts'
import { realCompute } from './real-compute.ts'
import { realDisk } from './real-disk.ts'
import { realNetwork } from './real-network.ts'
import type { World } from './world.ts'

export function realWorld(): World {
  return {
    clock: realClock,
    random: realRandom,
    network: realNetwork,
    disk: realDisk,
    compute: realCompute,
  }
}
