// The tasks of the jobs that Sluice brings along, as a task process loads them.

import type { TaskRegistry } from '../task.ts'
import { sortTasks } from './sort-tasks.ts'
import { wordCountTasks } from './word-count-tasks.ts'

export const tasks: TaskRegistry = { ...sortTasks, ...wordCountTasks }

/** Where a task process finds this module. */
export const tasksModule: string = import.meta.url
