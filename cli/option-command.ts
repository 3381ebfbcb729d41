// Makes a command of a declaration of options: reading them, `--help` and `--print-config` are the
// same for all.

import { commonFlagsHelp, loadOptions, splitCommonFlags } from '../client/common/load-options.ts'
import { helpText, printConfig, type HelpParts } from '../client/common/option-text.ts'
import type { OptionsDeclaration, OptionTable, ParsedOptions } from '../client/common/options.ts'
import { exitCodes, type Command, type CommandContext, type ExitCode } from './command.ts'

export interface OptionCommandParts<Table extends OptionTable> extends Omit<HelpParts, 'common'> {
  readonly declaration: OptionsDeclaration<Table>
  /** How many arguments without a flag it takes; none unless stated. */
  readonly positionalsMax?: number
  readonly run: (
    parsed: ParsedOptions<Table>,
    context: CommandContext,
    argv: readonly string[],
  ) => Promise<ExitCode>
}

export function optionCommand<const Table extends OptionTable>(
  parts: OptionCommandParts<Table>,
): Command {
  const { declaration, positionalsMax } = parts
  return {
    usage: parts.usage,
    help: () => helpText(declaration, { ...parts, common: commonFlagsHelp }),
    run: async (argv, context) => {
      const parsed = loadOptions(declaration, {
        argv,
        environment: context.environment,
        workingDirectory: context.workingDirectory,
        readFile: (path) => context.readFile(path),
        ...(positionalsMax === undefined ? {} : { positionalsMax }),
      })
      if (splitCommonFlags(argv).requests.has('print-config')) {
        context.print(printConfig(declaration, parsed))
        return exitCodes.success
      }
      return await parts.run(parsed, context, argv)
    },
  }
}
