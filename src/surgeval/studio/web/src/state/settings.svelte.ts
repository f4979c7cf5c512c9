/** Display settings and keys of this person: applied at once, stored a moment after the last change. */

import { actionsByChord, keyMap, ownKeys, remapped, type Action, type KeyMap } from '../lib/keys'
import { DEFAULTS, readSettings, type Settings } from '../lib/settings'

type Store = (key: 'display' | 'keys', value: unknown) => void

class SettingsStore {
  values = $state<Settings>({ ...DEFAULTS })
  keys = $state<KeyMap>(keyMap({}))
  byChord = $derived(actionsByChord(this.keys))
  private store: Store = () => undefined
  private timer = 0

  start(settings: Record<string, unknown>, keys: Record<string, unknown>, store: Store): void {
    this.values = readSettings(settings)
    this.keys = keyMap(keys)
    this.store = store
  }

  set<K extends keyof Settings>(name: K, value: Settings[K]): void {
    this.values[name] = value
    this.later()
  }

  setColour(key: string, colour: string): void {
    this.values.colours = { ...this.values.colours, [key]: colour }
    this.later()
  }

  toggle(name: 'showBoxes' | 'showLabels'): void {
    this.set(name, !this.values[name])
  }

  /** Draw a class, or draw it no more. */
  toggleClass(key: string): void {
    const hidden = this.values.hidden.filter((other) => other !== key)
    this.set('hidden', hidden.length < this.values.hidden.length ? hidden : [...hidden, key])
  }

  replace(settings: Settings): void {
    this.values = settings
    this.later()
  }

  remap(action: Action, chord: string): void {
    this.keys = remapped(this.keys, action, chord)
    this.store('keys', ownKeys(this.keys))
  }

  resetKeys(): void {
    this.keys = keyMap({})
    this.store('keys', {})
  }

  /** Store a change that still waits. */
  flush(): void {
    if (!this.timer) return
    window.clearTimeout(this.timer)
    this.timer = 0
    this.store('display', $state.snapshot(this.values))
  }

  private later(): void {
    window.clearTimeout(this.timer)
    this.timer = window.setTimeout(() => this.flush(), 400)
  }
}

export const settings = new SettingsStore()
