// How a runtime embeds Sluice: one producer writes a few records, two consumers read their shares.
//
//     npm start -- local                         in one terminal
//     node examples/embed.mjs                    in another
//
// In a real runtime the producer and the consumers are tasks in other processes: the descriptor is a
// plain value that goes to them with their task.

import { Buffer } from 'node:buffer'
import process from 'node:process'
import { loadShuffleServiceFactory, parseAttemptId, parseDataSetId, parseJobId } from 'sluice'

const managerUrl = process.argv[2] ?? 'http://127.0.0.1:9700'
const cluster = { managerUrl, clusterId: 'sluice' }
const factory = await loadShuffleServiceFactory('sluice')

// The job master's side: it registers the job and asks where the producer's output goes.
const master = factory.createShuffleMaster(cluster)
await master.start()
const jobId = parseJobId(`example-${process.pid}`)
await master.registerJob({
  jobId,
  onPartitionsLost: (lost) => console.log('produce again:', lost),
  onJobFailed: (error) => console.log('the job can not go on:', error),
})
const descriptor = await master.registerPartitionWithProducer(
  jobId,
  {
    dataSetId: parseDataSetId('numbers'),
    partitionIndex: 0,
    totalPartitions: 1,
    subpartitionCount: 2,
    isBroadcast: false,
  },
  { attemptId: parseAttemptId('attempt-1') },
)

// A task process's side: a producer writes and commits,
const environment = factory.createShuffleEnvironment(cluster)
const partition = environment.createResultPartition({ descriptor })
for (let number = 0; number < 10; number++) {
  const wait = partition.emitRecord(Buffer.from(`number ${number}`), number % 2)
  if (wait !== undefined) await wait
}
const committed = await partition.finish()
console.log(`committed ${committed.recordCount} records, ${committed.storedBytes} bytes`)

// and a consumer for each subpartition reads what is its own.
for (const subpartition of [0, 1]) {
  const gate = environment.createInputGate({
    inputs: [{ descriptor, firstSubpartition: subpartition, lastSubpartition: subpartition }],
  })
  for await (const batch of gate) {
    if (batch.kind === 'records') {
      for (const record of batch) console.log(`consumer ${subpartition}: ${Buffer.from(record)}`)
    }
    batch.recycle()
  }
  await gate.close()
}

await environment.close()
await master.unregisterJob(jobId)
await master.close()
