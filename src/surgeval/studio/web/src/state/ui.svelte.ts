/** What the screen is doing: mode, view, which dialog is open, which list the digits choose from. */

import { NO_FILTER, type Filter } from '../lib/filters'
import { fit, zoomAt, type View } from '../lib/geometry'
import { classes, type ClassName } from '../lib/schema'
import { studio } from './studio.svelte'

export type Dialog =
  | 'settings' | 'help' | 'track' | 'flag' | 'replace' | 'review' | 'study' | 'questions' | 'export' | 'import'
  | 'schema' | 'merging' | 'numbering' | 'proposing' | null
export type Tab = 'objects' | 'spans' | 'tracks' | 'problems' | 'flags' | 'disagreements'

class Ui {
  mode = $state<'edit' | 'draw'>('edit')
  shape = $state<'box' | 'polygon'>('box')
  dialog = $state<Dialog>(null)
  tab = $state<Tab>('objects')
  filter = $state.raw<Filter>(NO_FILTER)
  /** How much larger than usual things are drawn on a large screen, as the texts are. */
  factor = $state(1)
  stage = $state({ width: 800, height: 500 })
  view = $state.raw<View>({ scale: 1, x: 0, y: 0 })
  /** Whether the view follows the stage's size; a zoom or pan by hand ends that. */
  fitted = $state(true)
  /** Whether the pointer drags along the timeline: values are held then, as while playing. */
  scrubbing = $state(false)
  newClass = $state.raw<ClassName | null>(null)
  /** The list that digits choose from: the class, or an attribute of what is selected (or of the frame). */
  slot = $state<string>('')
  /** Whether the list was picked by hand: then it stays from value to value and from frame to frame. */
  pinned = $state(false)
  /** Whether digits label the whole frame even where something is selected. */
  imageSlot = $state(false)
  /** Whether the picture beside a guideline fills the panel. */
  largeGuideline = $state(false)
  /** The corners of a polygon being drawn; Escape empties it. */
  corners = $state.raw<[number, number][]>([])

  get drawClass(): ClassName | null {
    const all = studio.project ? classes(studio.project.schema) : []
    const own = this.newClass
    return own && all.some((one) => one.group === own.group && one.name === own.name) ? own : (all[0] ?? null)
  }

  /** Close a dialog that is done, unless another one was opened meanwhile. */
  close(dialog: Dialog): void {
    if (this.dialog === dialog) this.dialog = null
  }

  fit(): void {
    this.fitted = true
    this.refit()
  }

  refit(): void {
    if (studio.video && this.fitted) this.view = fit(studio.video, this.stage)
  }

  zoom(factor: number, x = this.stage.width / 2, y = this.stage.height / 2): void {
    this.fitted = false
    this.view = zoomAt(this.view, [x, y], factor)
  }
}

export const ui = new Ui()
