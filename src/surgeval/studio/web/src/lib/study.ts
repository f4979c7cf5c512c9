/** Reviews and agreement studies: what the server sends of them, and what can be read from it. */

export interface Round {
  number: number
  title: string
  reviewers: string[]
  author: string
  time: number
}

/** Frames from first to last, and who has seen them. */
export type SeenRun = [number, number, string[]]

export interface Reviews {
  round: number
  reviewers: string[]
  runs: SeenRun[]
}

export interface Segment {
  video: string
  first: number
  last: number
}

/** A segment that could be studied, and how many instances it shows. */
export interface DrawnSegment extends Segment {
  instances: number
}

/** The session of an annotator who sees boxes and no labels. */
export interface Blind {
  study: string
  title: string
  group: string
  segments: Segment[]
}

export interface Study {
  id: string
  title: string
  group: string
  annotators: string[]
  segments: Segment[]
  seed: number
  author: string
  time: number
  instances: number
  answered: Record<string, number>
  decided: number
  /** By annotator: what opens his or her blind session and nothing else. Empty on one's own machine. */
  tokens?: Record<string, string>
}

export interface Kappa {
  value: number | null
  low: number | null
  high: number | null
  reason: string
}

export interface Results extends Study {
  table: { component: string; cells: Record<string, Kappa>; mean: number | null }[]
  between: { annotators: [string, string]; cells: Record<string, Kappa> }[]
}

/** Instrument, verb and target. */
export type Triplet = [string, string, string]

export interface Disagreement {
  instance: string
  video: string
  frame: number
  label: Triplet
  answers: Record<string, Triplet | null>
  components: string[]
  decision: Decision | null
}

export interface Decision {
  choice: 'keep' | 'annotator' | 'other'
  annotator: string
  author: string
  time: number
  note: string
  name: string
  values: Record<string, string>
}

/** Video, frame and id of every instance that has no complete answer yet. */
export interface Progress {
  instances: number
  open: [string, number, string][]
}

/** Who has seen a frame. */
export function seenBy(runs: SeenRun[], frame: number): string[] {
  let low = 0
  let high = runs.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const [first, last, people] = runs[middle] as SeenRun
    if (frame < first) high = middle - 1
    else if (frame > last) low = middle + 1
    else return people
  }
  return []
}

/** The runs after a person has marked a stretch of frames, or taken the marks away. */
export function withMark(runs: SeenRun[], person: string, first: number, last: number, seen: boolean): SeenRun[] {
  const pieces: SeenRun[] = []
  let at = first
  const fresh = (to: number): void => {
    if (seen && at <= to) pieces.push([at, to, [person]])
    at = to + 1
  }
  for (const [begin, end, people] of runs) {
    if (end < first || begin > last) {
      if (begin > last) fresh(last)
      pieces.push([begin, end, people])
      continue
    }
    fresh(begin - 1)
    const others = people.filter((one) => one !== person)
    const inside = seen ? [...others, person].sort() : others
    const [from, to] = [Math.max(begin, first), Math.min(end, last)]
    if (begin < from) pieces.push([begin, from - 1, people])
    if (inside.length) pieces.push([from, to, inside])
    if (to < end) pieces.push([to + 1, end, people])
    at = Math.max(at, to + 1)
  }
  fresh(last)
  const joined: SeenRun[] = []
  for (const [begin, end, people] of pieces) {
    const before = joined.at(-1)
    if (before && before[1] === begin - 1 && before[2].join('\n') === people.join('\n')) before[1] = end
    else joined.push([begin, end, people])
  }
  return joined
}

/** How many frames a person has seen. */
export function seenCount(runs: SeenRun[], person: string): number {
  return runs.reduce((sum, [first, last, people]) => sum + (people.includes(person) ? last - first + 1 : 0), 0)
}

/** The next frame behind this one that a person has not seen, round the end; null where all are seen. */
export function nextUnseen(runs: SeenRun[], person: string, frame: number, frames: number): number | null {
  const mine = runs.filter(([, , people]) => people.includes(person))
  const free = (from: number, to: number): number | null => {
    let at = from
    for (const [first, last] of mine) {
      if (at < first) break
      if (at <= last) at = last + 1
    }
    return at < to ? at : null
  }
  return free(frame + 1, frames) ?? free(0, Math.min(frame + 1, frames))
}

/** The next unanswered instance behind the selected one, round the end. */
export function nextOpen(open: Progress['open'], video: string, frame: number, id: string): Progress['open'][number] | null {
  const here = open.findIndex((one) => one[2] === id)
  if (here >= 0) return open[(here + 1) % open.length] ?? null
  const later = ([v, f]: Progress['open'][number]): boolean => v > video || (v === video && f >= frame)
  return open.find(later) ?? open[0] ?? null
}

export function kappaText(one: Kappa | undefined): string {
  if (!one || one.value === null) return '–'
  const interval = one.low === null || one.high === null ? '' : ` [${one.low.toFixed(2)}, ${one.high.toFixed(2)}]`
  return `${one.value.toFixed(2)}${interval}`
}

/** Why some kappas have no interval, each reason once. */
export function kappaNotes(results: Results): string[] {
  const cells = [...results.table, ...results.between].flatMap((row) => Object.values(row.cells))
  return [...new Set(cells.filter((one) => one.value === null || one.low === null).map((one) => one.reason).filter(Boolean))]
}

/** The table as CSV: a column per annotator and their mean, then every two annotators. */
export function tableCsv(results: Results): string {
  const cell = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const number = (value: number | null | undefined): string => (value === null || value === undefined ? '' : value.toFixed(4))
  const pairs = results.between.map((pair) => pair.annotators.join(' – '))
  const columns = results.annotators.flatMap((name) => [name, `${name} low`, `${name} high`])
  const rows = results.table.map((row) => [
    row.component,
    ...results.annotators.flatMap((name) => [row.cells[name]?.value, row.cells[name]?.low, row.cells[name]?.high].map(number)),
    number(row.mean),
    ...results.between.map((pair) => number(pair.cells[row.component]?.value)),
  ])
  return [['component', ...columns, 'mean', ...pairs], ...rows].map((row) => row.map(cell).join(',')).join('\n') + '\n'
}

/** Names that were typed with commas between them, each once. */
export function namesOf(text: string): string[] {
  return [...new Set(text.split(/[,，、;\n]/).map((name) => name.trim()).filter(Boolean))]
}
