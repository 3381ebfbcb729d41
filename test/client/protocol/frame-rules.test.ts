import { describe, expect, it } from 'vitest'
import { FrameRules, type Phase, type Role } from '../../../client/protocol/frame-rules.ts'
import { messageList, messages } from '../../../client/protocol/messages.ts'

function rulesIn(role: Role, phase: Phase): FrameRules {
  const rules = new FrameRules(role)
  rules.enter(phase)
  return rules
}

/** Names of all messages that may come now. */
function admittedNames(role: Role, phase: Phase): string[] {
  return messageList
    .filter((declaration) => {
      const channelId = ['connection', 'any'].includes(declaration.channel) ? 0 : 1
      try {
        rulesIn(role, phase).admit(declaration, channelId)
        return true
      } catch (error) {
        expect(error).toMatchObject({ code: 'PROTOCOL', fields: { message: declaration.name } })
        return false
      }
    })
    .map(({ name }) => name)
}

describe('FrameRules', () => {
  it('admit nothing but the next step of the handshake, and Error', () => {
    expect(admittedNames('worker', 'hello')).toEqual(['Hello', 'Error'])
    expect(admittedNames('client', 'hello')).toEqual(['HelloAck', 'Error'])
    const authentication = ['Ping', 'Pong', 'Error']
    expect(admittedNames('worker', 'authentication')).toEqual(['Authenticate', ...authentication])
    expect(admittedNames('client', 'authentication')).toEqual(['Authenticated', ...authentication])
  })

  it('admit everything of the other side after it, the handshake apart', () => {
    const handshake = ['Hello', 'HelloAck', 'Authenticate', 'Authenticated']
    for (const [role, wrongWay] of [
      ['worker', 'worker-to-client'],
      ['client', 'client-to-worker'],
    ] as const) {
      expect(admittedNames(role, 'ready')).toEqual(
        messageList
          .filter(({ name, direction }) => !handshake.includes(name) && direction !== wrongWay)
          .map(({ name }) => name),
      )
    }
  })

  it('admit an Error of a channel only once there are channels', () => {
    expect(() => {
      rulesIn('worker', 'hello').admit(messages.Error, 3)
    }).toThrow('before the handshake')
    rulesIn('worker', 'ready').admit(messages.Error, 3)
  })

  it('admit unknown types after the handshake alone', () => {
    rulesIn('worker', 'ready').admit(undefined, 9)
    for (const phase of ['hello', 'authentication'] as const) {
      expect(() => {
        rulesIn('worker', phase).admit(undefined, 9)
      }).toThrow('before the handshake')
    }
  })

  it('admit channels whose numbers ascend, whatever they are for', () => {
    const rules = rulesIn('worker', 'ready')
    rules.admit(messages.OpenWrite, 3)
    rules.admit(messages.OpenRead, 9)
    for (const channelId of [0, 3, 8, 9]) {
      expect(() => {
        rules.admit(messages.Describe, channelId)
      }).toThrow('numbers ascend')
    }
    rules.admit(messages.Describe, 0xffff_ffff)
  })

  it('know where each message belongs', () => {
    const rules = rulesIn('worker', 'ready')
    expect(() => {
      rules.admit(messages.Ping, 1)
    }).toThrow('it belongs on 0')
    expect(() => {
      rules.admit(messages.WriteData, 0)
    }).toThrow('it needs a channel')
  })

  it('assert that this side sends what it may, where it may', () => {
    const rules = rulesIn('client', 'ready')
    expect(() => {
      rules.assertOutgoing(messages.WriteCommitted, 1)
    }).toThrow('a client never sends WriteCommitted')
    expect(() => {
      rules.assertOutgoing(messages.Ping, 1)
    }).toThrow('goes on channel 0')
    expect(() => {
      rules.assertOutgoing(messages.WriteData, 0)
    }).toThrow('needs a channel')
    rules.assertOutgoing(messages.OpenRead, 5)
    expect(rules.nextChannelId()).toBe(6)
    expect(rules.nextChannelId()).toBe(7)
    rules.assertOutgoing(messages.OpenRead, 6)
    expect(() => {
      rules.assertOutgoing(messages.OpenRead, 6)
    }).toThrow('ascend')
  })
})
