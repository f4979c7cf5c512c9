/** Keys and what they do. A chord is written as people write it: Ctrl+Shift+Z. */

const ACTIONS = {
  previous: 'A', next: 'D', previousTen: 'Alt+A', nextTen: 'Alt+D', firstFrame: 'Home', lastFrame: 'End',
  play: 'Space', slower: 'BracketLeft', faster: 'BracketRight',
  spanStart: 'Z', spanEnd: 'X', spanConfirm: 'E', edgeBack: 'Shift+A', edgeForward: 'Shift+D', edgeOther: 'Shift+E',
  spanCut: 'Shift+X', spanJoin: 'Shift+J', previousSpan: 'Shift+W', nextSpan: 'Shift+S',
  mode: 'J', shape: 'P', nextObject: 'S', previousObject: 'Alt+S', selectAll: 'Ctrl+A', cancel: 'Escape',
  remove: 'Delete', duplicate: 'Ctrl+D', copyPrevious: 'V', pasteRange: 'Shift+V', interpolate: 'I',
  left: 'ArrowLeft', right: 'ArrowRight', up: 'ArrowUp', down: 'ArrowDown',
  leftFar: 'Shift+ArrowLeft', rightFar: 'Shift+ArrowRight', upFar: 'Shift+ArrowUp', downFar: 'Shift+ArrowDown',
  chooseClass: 'C', nextAttribute: 'W', previousAttribute: 'Q', clearValue: 'Backspace', frameValues: 'G',
  accept: 'Y', reject: 'N', acceptAll: 'Shift+Y', rejectAll: 'Shift+N',
  trackMenu: 'T', flag: 'F', reviewed: 'R', nextUnreviewed: 'Shift+R', replace: 'Ctrl+H', numbering: 'Shift+T',
  proposing: 'Shift+P',
  undo: 'Ctrl+Z', redo: 'Ctrl+Shift+Z',
  fit: 'Backquote', zoomIn: 'Equal', zoomOut: 'Minus', labels: 'L', boxes: 'H', help: 'Shift+Slash', settings: 'Comma',
  search: 'Ctrl+F',
} as const satisfies Record<string, string>

export type Action = keyof typeof ACTIONS
export type KeyMap = Record<Action, string>
export const DEFAULT_KEYS: KeyMap = ACTIONS

export const GROUPS: Record<string, Action[]> = {
  navigation: ['previous', 'next', 'previousTen', 'nextTen', 'firstFrame', 'lastFrame', 'play', 'slower', 'faster',
    'search'],
  spans: ['spanStart', 'spanEnd', 'spanConfirm', 'edgeBack', 'edgeForward', 'edgeOther', 'spanCut', 'spanJoin',
    'previousSpan', 'nextSpan'],
  objects: ['mode', 'shape', 'nextObject', 'previousObject', 'selectAll', 'cancel', 'remove', 'duplicate',
    'copyPrevious', 'pasteRange', 'interpolate', 'left', 'right', 'up', 'down', 'leftFar', 'rightFar', 'upFar',
    'downFar', 'trackMenu', 'numbering'],
  labels: ['chooseClass', 'nextAttribute', 'previousAttribute', 'clearValue', 'frameValues', 'accept', 'reject',
    'acceptAll', 'rejectAll', 'flag', 'reviewed', 'nextUnreviewed', 'replace', 'proposing'],
  view: ['fit', 'zoomIn', 'zoomOut', 'labels', 'boxes', 'help', 'settings', 'undo', 'redo'],
}

export interface KeyPress {
  code: string
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  shiftKey: boolean
}

const ALONE = new Set(['Control', 'Shift', 'Alt', 'Meta', 'AltGraph', 'Dead'])

/** The chord of a key press, by the place of the key, so that Shift and other layouts do not change it. */
export function chordOf(press: KeyPress): string | null {
  if (ALONE.has(press.key)) return null
  if (press.key === '?') return 'Shift+Slash' // wherever the layout has it
  const letter = /^[a-z]$/i.test(press.key) ? press.key.toUpperCase() : null
  const name = letter ?? press.code.replace(/^Key/, '').replace(/^(Digit|Numpad)(?=\d$)/, '')
  if (!name) return null
  const parts = [press.ctrlKey || press.metaKey ? 'Ctrl' : '', press.altKey ? 'Alt' : '', press.shiftKey ? 'Shift' : '']
  return [...parts.filter(Boolean), name].join('+')
}

/** The keys in force: the usual ones with a person's own on top; unknown actions and empty chords are left out. */
export function keyMap(own: Record<string, unknown>): KeyMap {
  const map: KeyMap = { ...DEFAULT_KEYS }
  for (const [action, chord] of Object.entries(own)) {
    if (action in map && typeof chord === 'string' && chord) map[action as Action] = chord
  }
  return map
}

export function actionsByChord(map: KeyMap): Map<string, Action> {
  return new Map((Object.entries(map) as [Action, string][]).map(([action, chord]) => [chord, action]))
}

/** Another key for an action; the action that had it takes the key that becomes free. */
export function remapped(map: KeyMap, action: Action, chord: string): KeyMap {
  const other = actionsByChord(map).get(chord)
  return other && other !== action ? { ...map, [other]: map[action], [action]: chord } : { ...map, [action]: chord }
}

/** What differs from the usual keys: that is what is stored. */
export function ownKeys(map: KeyMap): Partial<KeyMap> {
  return Object.fromEntries(
    (Object.entries(map) as [Action, string][]).filter(([action, chord]) => DEFAULT_KEYS[action] !== chord),
  )
}

/** Digits choose from a list: 1–9, 0 as the tenth, with Shift the next ten. Null: no digit. */
export function digitIndex(chord: string): number | null {
  const found = /^(Shift\+)?(\d)$/.exec(chord)
  if (!found) return null
  return ((Number(found[2]) + 9) % 10) + (found[1] ? 10 : 0)
}

const SHOWN: Record<string, string> = {
  Space: '␣', BracketLeft: '[', BracketRight: ']', Equal: '+', Minus: '−', Slash: '/', Comma: ',', Period: '.',
  ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Escape: 'Esc', Delete: 'Del', Backspace: '⌫',
  Backquote: '`', Semicolon: ';', Quote: "'", Backslash: '\\',
}

export function chordText(chord: string): string {
  if (chord === 'Shift+Slash') return '?'
  return chord.split('+').map((part) => SHOWN[part] ?? part).join('+')
}

