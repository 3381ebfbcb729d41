// The Java constants are compared with the committed files in test/client/protocol/generate.test.ts;
// here: that they say what the declarations say.

import { describe, expect, it } from 'vitest'
import { errorTable } from '../../../client/common/errors.ts'
import { javaFiles } from '../../../client/flink/generate-java.ts'
import { messageList } from '../../../client/protocol/messages.ts'

describe('the Java constants', () => {
  const files = javaFiles('a notice')
  const text = files.map((file) => file.text).join('\n')

  it('are Java files of the plugin that begin with the notice', () => {
    for (const file of files) {
      expect(file.path).toMatch(/^src\/main\/java\/org\/sluice\/flink\/wire\/\w+\.java$/)
      expect(file.text.split('\n')[0]).toContain('a notice')
    }
  })

  it('name every message with its number', () => {
    for (const { name, id } of messageList) {
      const constant = name.replaceAll(/(?<=[a-z])([A-Z])/g, '_$1').toUpperCase()
      expect(text).toMatch(new RegExp(`\\b${constant}\\b[^;\\n]*\\b${String(id)}\\b`))
    }
  })

  it('name every error code with its number on the wire', () => {
    for (const [code, { wireCode }] of Object.entries(errorTable)) {
      expect(text).toMatch(new RegExp(`\\b${code}\\(${String(wireCode)}\\b`))
    }
  })
})
