import { describe } from 'vitest'
import { realCompute } from '../../../client/common/real-compute.ts'
import { describeCompute } from '../../support/compute-contract.ts'

describe('the real compute', () => {
  describeCompute(() => ({ compute: realCompute, drive: (promise) => promise }))
})
