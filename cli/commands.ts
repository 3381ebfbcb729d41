// All commands by name. Each is loaded when it is called: a worker should not carry the memory of
// what it never runs.

import type { Command } from './command.ts'

export interface CommandEntry {
  /** One line for the list of commands. */
  readonly about: string
  readonly load: () => Promise<Command>
}

export const commands: Readonly<Record<string, CommandEntry>> = {
  local: {
    about: 'Start a manager and workers on this machine, until Ctrl-C.',
    load: async () => (await import('./local-command.ts')).localCommand,
  },
  sort: {
    about: 'Sort the lines of a file by bytes, through the shuffle.',
    load: async () => (await import('./job-commands.ts')).sortCommand,
  },
  'word-count': {
    about: 'Count the words of a file, through the shuffle.',
    load: async () => (await import('./job-commands.ts')).wordCountCommand,
  },
  'main-job': {
    about: 'Count words of real text on a cluster of its own, and check the result.',
    load: async () => (await import('./main-job-command.ts')).mainJobCommand,
  },
  status: {
    about: 'The cluster in a few figures.',
    load: async () => (await import('./cluster-commands.ts')).statusCommand,
  },
  jobs: {
    about: 'The jobs that the manager knows.',
    load: async () => (await import('./cluster-commands.ts')).jobsCommand,
  },
  workers: {
    about: 'The workers that the manager knows.',
    load: async () => (await import('./cluster-commands.ts')).workersCommand,
  },
  partitions: {
    about: "A job's partitions: where they are and in which state.",
    load: async () => (await import('./cluster-commands.ts')).partitionsCommand,
  },
  release: {
    about: 'Release everything of a job.',
    load: async () => (await import('./cluster-commands.ts')).releaseCommand,
  },
  drain: {
    about: 'Take a worker out of service: it refuses new partitions, and serves what it has.',
    load: async () => (await import('./service-state-commands.ts')).drainCommand,
  },
  exclude: {
    about: 'Let no new partition be placed on a worker; all else goes on.',
    load: async () => (await import('./service-state-commands.ts')).excludeCommand,
  },
  undrain: {
    about: 'Put a worker back into service.',
    load: async () => (await import('./service-state-commands.ts')).undrainCommand,
  },
  why: {
    about: 'What went wrong with a job, and where its time goes.',
    load: async () => (await import('./why-command.ts')).whyCommand,
  },
  doctor: {
    about: 'Look for what is wrong with a configuration and a running cluster.',
    load: async () => (await import('./doctor-command.ts')).doctorCommand,
  },
  'support-bundle': {
    about: 'Gather what manager and workers say of themselves into one archive.',
    load: async () => (await import('./support-bundle-command.ts')).supportBundleCommand,
  },
  'log-level': {
    about: 'Change the level of the log of running processes.',
    load: async () => (await import('./settings-commands.ts')).logLevelCommand,
  },
  reload: {
    about: 'Let running processes read their configuration again.',
    load: async () => (await import('./settings-commands.ts')).reloadCommand,
  },
  manager: {
    about: 'Run a shuffle manager.',
    load: async () => (await import('./service-commands.ts')).managerCommand,
  },
  worker: {
    about: 'Run a shuffle worker.',
    load: async () => (await import('./service-commands.ts')).workerCommand,
  },
}
