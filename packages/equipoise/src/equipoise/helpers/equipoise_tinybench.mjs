// Shorten the runs of tinybench, and write the median time of each task to a file.
//
//     NODE_OPTIONS=--import=file:///…/equipoise_tinybench.mjs EQUIPOISE_TINYBENCH=FILE node bench.js
//
// tinybench has no file of results, so this module wraps the methods of its classes (versions 2 to
// 6). Without EQUIPOISE_TINYBENCH, the module only shortens the runs. An option of the script has
// precedence, unless it equals tinybench's default. The file in EQUIPOISE_TINYBENCH_RUNNING has the
// name of the task that runs, and is empty between runs.

import { appendFileSync, existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

// Milliseconds, and minimum numbers of calls. tinybench's defaults are up to 1000 ms and 64 calls.
const SHORT_RUN = { time: 100, warmupTime: 50, iterations: 10, warmupIterations: 5 }
const RESULTS = process.env.EQUIPOISE_TINYBENCH
const RUNNING = process.env.EQUIPOISE_TINYBENCH_RUNNING

/** Return the folders `dist` of the tinybench that the script or its working folder can import. */
function installedTinybench() {
  const places = [join(process.cwd(), 'script')]
  if (process.argv[1] && existsSync(process.argv[1])) {
    const script = realpathSync(process.argv[1])
    // `node FOLDER` runs a script in the folder.
    places.push(script, join(script, 'script'))
  }
  const folders = new Set()
  for (const place of places) {
    try {
      folders.add(dirname(createRequire(place).resolve('tinybench')))
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  return folders
}

/** Return the object that has the limits of a run: versions 3 to 5 have them in `opts`. */
function limitsOf(bench) {
  return bench.opts ?? bench
}

function shortener(defaults) {
  return (bench) => {
    const limits = limitsOf(bench)
    for (const [name, value] of Object.entries(SHORT_RUN)) {
      if (limits[name] === defaults[name]) limits[name] = Math.min(value, defaults[name])
    }
  }
}

function wrap({ Bench, Task }, version) {
  const shorten = shortener({ ...limitsOf(new Bench()) })
  const running = new WeakSet()
  for (const [method, original] of methodsOf(Bench, ['run', 'runSync', 'runConcurrently'])) {
    Bench.prototype[method] = function (...options) {
      shorten(this)
      // `run` and `runConcurrently` may call each other.
      if (running.has(this)) return original.apply(this, options)
      running.add(this)
      const end = () => {
        running.delete(this)
        write(this, this.tasks)
      }
      if (method !== 'runSync') return original.apply(this, options).finally(end)
      try {
        return original.apply(this, options)
      } finally {
        end()
      }
    }
  }
  for (const [method, original] of methodsOf(Bench, ['warmup'])) {
    Bench.prototype[method] = function (...options) {
      shorten(this)
      return original.apply(this, options)
    }
  }
  // vitest 1 to 4 runs tasks without `Bench.run`.
  for (const [method, original] of methodsOf(Task, ['run', 'warmup'])) {
    Task.prototype[method] = async function (...options) {
      announce(this)
      const isAlone = this.bench instanceof Bench && !running.has(this.bench)
      if (isAlone) shorten(this.bench)
      const returned = await original.apply(this, options)
      if (isAlone && method === 'run') write(this.bench, [this])
      return returned
    }
  }

  // `Bench.runSync` of version 3 and later, and `Bench.warmupSync`.
  for (const [method, original] of methodsOf(Task, ['runSync', 'warmupSync'])) {
    Task.prototype[method] = function (...options) {
      announce(this)
      return original.apply(this, options)
    }
  }

  function announce(task) {
    if (RUNNING) writeFileSync(RUNNING, task.name)
  }

  function write(bench, tasks) {
    if (RUNNING) writeFileSync(RUNNING, '')
    if (RESULTS) appendFileSync(RESULTS, tasks.map((task) => lineOf(bench, task, version)).join(''))
  }
}

function methodsOf(type, names) {
  const methods = type?.prototype ?? {}
  return names.filter((name) => methods[name]).map((name) => [name, methods[name]])
}

function lineOf(bench, task, version) {
  const { result } = task
  // Version 2 has the statistics in the result itself.
  const statistics = result?.latency ?? result ?? {}
  const median = statistics.p50 ?? middleOf(statistics.samples ?? [])
  const outcome = Number.isFinite(median) ? { median_ms: median } : { failure: failureOf(result) }
  return JSON.stringify({ version, bench: bench.name ?? null, task: task.name, ...outcome }) + '\n'
}

/** Return the median of sorted times, for version 2, which has no `p50`. */
function middleOf(samples) {
  const half = samples.length >> 1
  return samples.length % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2
}

function failureOf(result) {
  const error = result?.error
  return error ? String(error.message ?? error) : `it was not completed (${result?.state ?? 'no result'})`
}

async function main() {
  for (const folder of installedTinybench()) {
    const { version } = JSON.parse(readFileSync(join(folder, '..', 'package.json'), 'utf8'))
    // Versions 2 and 3 have separate classes for `import` and `require`.
    for (const name of ['index.js', 'index.cjs']) {
      const file = join(folder, name)
      if (!existsSync(file)) continue
      const module = await import(pathToFileURL(file))
      wrap({ ...module.default, ...module }, version)
    }
  }
}

// Node loads this module in every program, such as npm, which must go on.
await main().catch((error) => console.error(`Equipoise cannot observe tinybench: ${error.message}`))
