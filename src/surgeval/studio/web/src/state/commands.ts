/** Every action by its name: keys, buttons and menus all come through here. */

import { tick } from 'svelte'
import { digitIndex, chordOf, type Action } from '../lib/keys'
import { copyPrevious, decide, decideRange, duplicate, moveBy, redo, remove, undo } from './edits'
import { interpolate, pasteRange } from './identity'
import { CLASS_SLOT } from './answers'
import { journeys } from './journeys'
import { labelling } from './labelling.svelte'
import { playback } from './playback.svelte'
import { review } from './review.svelte'
import { selection } from './selection.svelte'
import { settings } from './settings.svelte'
import { cutSpan, deleteSpan, draft, hold, joinSpan, nudge, stepSpan } from './spans.svelte'
import { studio } from './studio.svelte'
import { studies } from './study.svelte'
import { ui, type Dialog } from './ui.svelte'

function step(by: number): void {
  if (playback.playing) playback.stop()
  void studio.step(by)
}

function shift(dx: number, dy: number): void {
  moveBy(selection.annotations, dx, dy)
}

/** The frame that is meant: while playing the one on the screen, else the one asked for. */
function inSight(): number {
  return playback.playing ? studio.shown : studio.frame
}

/** One thing at a time: a drawing, a span being made, a dialog, then the selection. */
function cancel(): void {
  if (ui.dialog) ui.dialog = null
  else if (ui.corners.length) ui.corners = []
  else if (draft.active) draft.cancel()
  else if (ui.imageSlot) ui.imageSlot = false
  else selection.clear()
}

function toggleDialog(name: Exclude<Dialog, null>): void {
  ui.dialog = ui.dialog === name ? null : name
}

export const commands: Record<Action, () => void> = {
  previous: () => step(-1),
  next: () => step(1),
  previousTen: () => step(-10),
  nextTen: () => step(10),
  firstFrame: () => void studio.go(0),
  lastFrame: () => void studio.go((studio.video?.frames ?? 1) - 1),
  play: () => playback.toggle(),
  slower: () => playback.faster(-1),
  faster: () => playback.faster(1),
  spanStart: () => draft.mark('start', inSight()),
  spanEnd: () => draft.mark('end', inSight()),
  spanConfirm: () => void draft.confirm(),
  edgeBack: () => nudge(-1),
  edgeForward: () => nudge(1),
  edgeOther: () => (selection.edge = selection.edge === 'first' ? 'last' : 'first'),
  spanCut: cutSpan,
  spanJoin: joinSpan,
  previousSpan: () => stepSpan(-1),
  nextSpan: () => stepSpan(1),
  mode: () => (ui.mode = ui.mode === 'edit' ? 'draw' : 'edit'),
  shape: () => (ui.shape = ui.shape === 'box' ? 'polygon' : 'box'),
  nextObject: () => selection.cycle(1),
  previousObject: () => selection.cycle(-1),
  selectAll: () => selection.only(...studio.annotations(studio.shown)),
  cancel,
  remove: () => (selection.annotations.length ? remove(selection.annotations) : deleteSpan()),
  duplicate: () => void duplicate(selection.annotations),
  copyPrevious: () => void journeys.begin(copyPrevious), // what is copied is what the next keys are about
  pasteRange: () => void pasteRange(),
  interpolate: () => void interpolate(),
  left: () => shift(-1, 0),
  right: () => shift(1, 0),
  up: () => shift(0, -1),
  down: () => shift(0, 1),
  leftFar: () => shift(-10, 0),
  rightFar: () => shift(10, 0),
  upFar: () => shift(0, -10),
  downFar: () => shift(0, 10),
  chooseClass: () => (ui.slot = CLASS_SLOT),
  nextAttribute: () => labelling.cycleSlot(1),
  previousAttribute: () => labelling.cycleSlot(-1),
  clearValue: () => labelling.clear(),
  frameValues: () => {
    ui.imageSlot = !ui.imageSlot
    ui.slot = ''
  },
  accept: () => decide('accept', false),
  reject: () => decide('reject', false),
  acceptAll: () => (draft.range ? void decideRange('accept', draft.range) : decide('accept', true)),
  rejectAll: () => (draft.range ? void decideRange('reject', draft.range) : decide('reject', true)),
  replace: () => toggleDialog('replace'),
  numbering: () => toggleDialog('numbering'),
  proposing: () => toggleDialog('proposing'),
  trackMenu: () => toggleDialog('track'),
  flag: () => toggleDialog('flag'),
  reviewed: () => review.mark(),
  nextUnreviewed: () => void (studio.blind ? studies.nextUnanswered() : review.next()),
  undo,
  redo,
  fit: () => ui.fit(),
  zoomIn: () => ui.zoom(1.25),
  zoomOut: () => ui.zoom(0.8),
  labels: () => settings.toggle('showLabels'),
  boxes: () => settings.toggle('showBoxes'),
  help: () => toggleDialog('help'),
  settings: () => toggleDialog('settings'),
  search: () => document.querySelector<HTMLInputElement>('[data-testid="search"]')?.focus(),
}

/** Keys that may repeat while held down. */
const REPEATS = new Set<Action>([
  'previous', 'next', 'previousTen', 'nextTen', 'edgeBack', 'edgeForward', 'left', 'right', 'up', 'down', 'leftFar',
  'rightFar', 'upFar', 'downFar', 'undo', 'redo', 'zoomIn', 'zoomOut', 'nextObject', 'previousObject',
])

/** What an annotator of a blind study can do: look around, and answer. */
const BLIND = new Set<Action>([
  'previous', 'next', 'previousTen', 'nextTen', 'firstFrame', 'lastFrame', 'play', 'slower', 'faster', 'spanStart',
  'spanEnd', 'spanConfirm', 'nextObject', 'previousObject', 'selectAll', 'cancel', 'chooseClass', 'nextAttribute',
  'previousAttribute', 'clearValue', 'nextUnreviewed', 'undo', 'redo', 'fit', 'zoomIn', 'zoomOut', 'labels', 'boxes',
  'help', 'settings', 'search',
])

/** Keys that go to another frame, or have nothing to do with one. */
const MOVES = new Set<Action>([
  'previous', 'next', 'previousTen', 'nextTen', 'firstFrame', 'lastFrame', 'play', 'slower', 'faster', 'spanStart', 'spanEnd',
  'fit', 'zoomIn', 'zoomOut', 'labels', 'boxes', 'help', 'settings', 'search', 'mode', 'shape',
])

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) return !['checkbox', 'button', 'radio', 'color', 'file'].includes(target.type)
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
}

export function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return
  const chord = chordOf(event)
  if (!chord) return
  if (typing(event.target)) {
    if (chord === 'Escape') (event.target as HTMLElement).blur()
    return
  }
  // Clicks leave no focus behind, so a focused button was reached by Tab and answers to these keys itself.
  if (event.target instanceof HTMLButtonElement && (chord === 'Space' || chord === 'Enter')) return
  const digit = digitIndex(chord)
  const action = settings.byChord.get(chord)
  if (ui.dialog && action !== 'cancel' && action !== ui.dialog) return
  if (digit === null && !action) return
  if (action && studio.blind && !BLIND.has(action)) return
  event.preventDefault()
  if (event.repeat && !(action && REPEATS.has(action))) return
  if (mustWait(action)) later(event, action)
  else if (action) commands[action]()
  else if (digit !== null) labelling.digit(digit, event.code)
}

/** Keys that wait for the frame that was asked for before them, and how many there are. */
let line = Promise.resolve()
let waiting = 0
let itsTurn = false

/**
 * Keys typed faster than frames come: what is said after a step is meant for the frame it leads to, not for the one that
 * is still on the screen. Steps alone wait only where it is still asked for which frame is meant.
 */
function mustWait(action: Action | undefined): boolean {
  if (itsTurn || playback.playing) return false
  if (waiting) return true
  if (ui.dialog) return false // Escape is about the dialog
  return journeys.underway || (studio.frame !== studio.shown && !(action && MOVES.has(action)))
}

/** The same key press again when its turn comes, with whatever dialog is open then. */
function later({ code, key, ctrlKey, metaKey, altKey, shiftKey, repeat }: KeyboardEvent, action: Action | undefined): void {
  const moves = action !== undefined && MOVES.has(action) // steps that were held down must not go on one picture at a time
  const again = { code, key, ctrlKey, metaKey, altKey, shiftKey, repeat, bubbles: true, cancelable: true }
  waiting += 1
  line = line.then(() => (moves ? journeys.known() : journeys.arrived())).then(tick).then(() => {
    waiting -= 1
    if (ui.dialog === 'questions') return // another page, with keys of its own
    itsTurn = true
    document.body.dispatchEvent(new KeyboardEvent('keydown', again))
    itsTurn = false
  })
}

/** A key comes up after it went down, also where that has to wait. */
export function onKeyUp({ code }: KeyboardEvent): void {
  if (waiting) line = line.then(() => void hold.end(code))
  else void hold.end(code)
}

export function onPointerUp(): void {
  void hold.end('')
}

/** A window that is left hears no key come up. */
export function onBlur(): void {
  void hold.end()
}
