// The scheduler's figures on a modelled disk. They are virtual time and counts, the same on every
// machine, so they are asserted. At full size they are in test/large.

import { describe } from 'vitest'
import { holdFigures } from './hold-figures.ts'

describe('the real data path on a modelled disk', () => {
  holdFigures('small')
})
