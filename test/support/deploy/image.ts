// The image built without a container engine: the Dockerfile's steps run one by one, the last stage's in
// a root of its own (Debian's minimal system with Node), and its processes as the image's user with that
// root mounted read-only. The base images are the one thing that is stood in for.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { ChildRun, until } from '../cluster.ts'
import { projectRoot, readText } from '../source-tree.ts'
import { toolPath } from './chart-tools.ts'
import { execForm, parseCopy, parseDockerfile, textOf } from './dockerfile.ts'
import type { Instruction, Stage } from './dockerfile.ts'

/** A network of its own has a loopback that is down: SIOCSIFFLAGS with IFF_UP. */
const loopbackUp = `python3 -c '
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 1))
print("up", flush=True)'`

/** Stages that are not run here: what they make, and who checks that it can be made. */
const stagesElsewhere: Readonly<Record<string, string>> = {
  flink: "the plugin's jars: its own tests build them with Maven",
}

export class Image {
  readonly #directory: string
  readonly #roots = new Map<string, string>()
  readonly #last: Stage
  /** Holds the network that the containers share, where the image's own ports are free. */
  readonly #network: ChildRun
  readonly root: string

  private constructor(directory: string, last: Stage) {
    this.#directory = directory
    this.#last = last
    this.#network = new ChildRun('unshare', ['--net', 'sh', '-c', `${loopbackUp} && exec cat`])
    this.root = join(directory, 'root')
  }

  /** Runs all steps; `directory` is emptied by the caller. */
  static async build(directory: string): Promise<Image> {
    const stages = parseDockerfile(readText('Dockerfile'))
    const image = new Image(directory, stages.at(-1)!)
    for (const stage of stages) image.#runStage(stage)
    await until('the network is up', () => image.#network.stdout.includes('up'))
    return image
  }

  /** Ends its network and removes all of it. */
  async remove(): Promise<void> {
    await this.#network.kill('SIGKILL')
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** The status of an answer to a request within the network of the containers. */
  async request(address: string): Promise<number | undefined> {
    const script =
      'fetch(process.argv[1]).then(({ status }) => console.log(status), () => undefined)'
    const { stdout } = await this.#run(['node', '-e', script, address], {}).finished
    return stdout === '' ? undefined : Number(stdout)
  }

  /** Starts a container of the image: its entry point with `argv`, read-only, as its user. */
  start(argv: readonly string[], mounts: Readonly<Record<string, string>> = {}): ChildRun {
    return this.#run([...execForm(textOf(this.#last, 'ENTRYPOINT')), ...argv], mounts)
  }

  /** Runs the health check in a container; whether it is healthy. */
  async isHealthy(): Promise<boolean> {
    const run = this.#run(execForm(textOf(this.#last, 'HEALTHCHECK')), {})
    return (await run.finished).code === 0
  }

  /** Runs any command in a container. */
  run(command: readonly string[]): ChildRun {
    return this.#run(command, {})
  }

  #run(command: readonly string[], mounts: Readonly<Record<string, string>>): ChildRun {
    const script = [
      'root=$1 user=$2 directory=$3; shift 3',
      'mount --bind -o ro "$root" "$root"',
      'mount -t tmpfs tmpfs "$root/tmp"',
      'chmod 1777 "$root/tmp"',
      ...Object.entries(mounts).map(([from, to]) => `mount --bind "${from}" "$root${to}"`),
      'exec chroot --userspec="$user" "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp NODE_ENV=production sh -c \'cd "$0" && exec "$@"\' "$directory" "$@"',
    ].join('\n')
    const place = [this.root, textOf(this.#last, 'USER'), textOf(this.#last, 'WORKDIR')]
    const network = `--net=/proc/${String(this.#network.pid)}/ns/net`
    const argv = [network, 'unshare', '--mount', 'sh', '-euc', script, 'sh', ...place, ...command]
    return new ChildRun('nsenter', argv)
  }

  #runStage(stage: Stage): void {
    const isLast = stage === this.#last
    const root = isLast ? this.root : join(this.#directory, stage.name ?? 'stage')
    if (stage.name !== undefined) this.#roots.set(stage.name, root)
    mkdirSync(root, { recursive: true })
    if (stage.name !== undefined && stage.name in stagesElsewhere) {
      mkdirSync(join(root, 'jars'))
      return
    }
    if (isLast) layBase(root)
    let directory = '/'
    for (const instruction of stage.instructions) {
      if (instruction.name === 'WORKDIR') {
        directory = instruction.text
        mkdirSync(join(root, directory), { recursive: true })
      } else if (instruction.name === 'COPY') this.#copy(instruction, join(root, directory))
      else if (instruction.name === 'RUN') {
        if (isLast) runIn('chroot', [root, 'sh', '-c', `cd ${directory} && ${instruction.text}`])
        else runIn('sh', ['-c', instruction.text], join(root, directory))
      }
    }
  }

  #copy({ text }: Instruction, directory: string): void {
    const { from, sources, to } = parseCopy(text)
    const context = from === undefined ? projectRoot : this.#roots.get(from)!
    for (const source of sources) {
      if (isAbsolute(to)) throw new Error(`COPY ${text}: the tests know targets in WORKDIR only`)
      const target = to.endsWith('/') ? join(directory, to, basename(source)) : join(directory, to)
      cpSync(join(context, source), target, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => from !== undefined || !/\/(target|node_modules)$/.test(path),
      })
    }
  }
}

/** What stands in for the base image: Debian's minimal system and this machine's Node. */
function layBase(root: string): void {
  runIn('cp', ['--archive', `${toolPath('debian-root-')}/.`, root])
  const node = join(root, 'usr/local/bin/node')
  cpSync(process.execPath, node)
  if (!existsSync(node)) throw new Error('Node could not be copied')
}

function runIn(command: string, argv: readonly string[], cwd?: string): void {
  // A person's own npm settings are the machine's; those of a surrounding npm are not.
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_(package|lifecycle)|INIT_CWD|NODE_ENV|VITEST)/.test(name),
    ),
  )
  const { status, stderr, stdout } = spawnSync(command, argv, {
    cwd,
    env: environment,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${command} ${argv.join(' ')}:\n${stdout}${stderr}`)
}

/** The image's ports, as EXPOSE names them. */
export function exposedPorts(): number[] {
  const last = parseDockerfile(readFileSync(join(projectRoot, 'Dockerfile'), 'utf8')).at(-1)!
  return textOf(last, 'EXPOSE').split(/\s+/).map(Number)
}
