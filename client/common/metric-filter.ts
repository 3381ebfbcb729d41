// The metrics that a process shows: all, or those whose whole names one of its expressions fits. In the
// process, so that a large cluster pays neither for making nor for sending what nobody looks at.

/** What is asked of prom-client's Registry. */
export interface MetricSource {
  getMetricsAsArray(): readonly { readonly name?: string }[]
  getSingleMetricAsString(name: string): Promise<string>
  metrics(): Promise<string>
}

const patternsMax = 100
const patternLengthMax = 500

/** What is wrong with the option; undefined when nothing is. */
export function complaintAboutPatterns(patterns: readonly string[]): string | undefined {
  if (patterns.length > patternsMax) {
    return `--metrics-allow takes at most ${String(patternsMax)} expressions`
  }
  for (const pattern of patterns) {
    if (pattern.length > patternLengthMax) {
      return `--metrics-allow takes expressions of at most ${String(patternLengthMax)} characters`
    }
    try {
      new RegExp(pattern)
    } catch (error) {
      return `--metrics-allow has an expression that is none: ${String(error)}`
    }
  }
  return undefined
}

/** The text of a scrape. */
export async function metricsText(
  source: MetricSource,
  patterns: readonly string[],
): Promise<string> {
  if (patterns.length === 0) return await source.metrics()
  const allowed = new RegExp(`^(?:${patterns.join('|')})$`)
  const names = source
    .getMetricsAsArray()
    .map(({ name }) => name ?? '')
    .filter((name) => allowed.test(name))
  const texts = await Promise.all(names.map((name) => source.getSingleMetricAsString(name)))
  return texts.map((text) => `${text}\n`).join('\n')
}
