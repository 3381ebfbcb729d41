import { expect, test } from 'vitest'
import { withListenAdvice } from '../../../client/common/listen-error.ts'
import { realNetwork } from '../../../client/common/real-network.ts'

const options = { host: 'bind-host', port: 'data-port' }
function listen(host: string, port: number) {
  const address = { host, port }
  return withListenAdvice(
    realNetwork.listen(address, () => undefined),
    address,
    options,
  )
}

test('a port that is taken is named with the option that changes it', async () => {
  const first = await listen('127.0.0.1', 0)
  const { port } = first.address
  await expect(listen('127.0.0.1', port)).rejects.toMatchObject({
    code: 'BUSY',
    message: expect.stringMatching(
      `^127.0.0.1:${String(port)} is in use: .* --data-port \\(0: any`,
    ) as string,
  })
  await first.close()
})

test('an address of another machine is named with both options', async () => {
  // Of the range for documents: nobody has it.
  await expect(listen('2001:db8::1', 1)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(
      /can't listen on \[2001:db8::1\]:1: .*--bind-host, .*--data-port/,
    ) as string,
  })
})
