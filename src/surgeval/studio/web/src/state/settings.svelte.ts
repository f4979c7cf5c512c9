/** Display settings and keys of this person: applied at once, stored a moment after the last change. */

import { actionsByChord, keyMap, ownKeys, remapped, type Action, type KeyMap } from '../lib/keys'
import { DEFAULTS, readSettings, type Settings } from '../lib/settings'

type Store = (key: 'display' | 'keys', value: unknown) => void

class SettingsStore {
  values = $state<Settings>({ ...DEFAULTS })
  keys = $state<KeyMap>(keyMap({}))
  byChord = $derived(actionsByChord(this.keys))
  showLabels = $state(true)
  showBoxes = $state(true)
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

  private later(): void {
    window.clearTimeout(this.timer)
    this.timer = window.setTimeout(() => this.store('display', $state.snapshot(this.values)), 400)
  }
}

export const settings = new SettingsStore()
