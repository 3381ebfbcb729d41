// The model of test/model at the size that its bounds are written for: 500 producers, at slices of
// 1 MiB 60, by 500 consumers.

import { describe } from 'vitest'
import { holdFigures } from '../model/hold-figures.ts'

describe('the real data path on a modelled disk, at full size', () => {
  holdFigures('full')
})
