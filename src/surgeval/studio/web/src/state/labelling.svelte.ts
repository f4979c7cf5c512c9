/** What digits and clicks of the panel do: label what is selected, the frame, or the span being made. */

import { choices, classKey, classes, imageChoices, type Choice, type ClassName } from '../lib/schema'
import { trackKey, trackOf, type Track } from '../lib/types'
import { CLASS_SLOT } from './answers'
import { classify, setImageValues, setValues } from './edits'
import { playback } from './playback.svelte'
import { selection } from './selection.svelte'
import { draft, hold } from './spans.svelte'
import { studio } from './studio.svelte'
import { ui } from './ui.svelte'

class Labelling {
  /** Selected classes: of the things in this frame, and of selected identities elsewhere where a value can reach those. */
  selectedClasses = $derived.by<ClassName[]>(() => {
    const said = studio.blind && draft.active ? draft.values[CLASS_SLOT] : null
    if (studio.blind && said) return [{ group: studio.blind.group, name: said }]
    const elsewhere = studio.blind || !this.overFrames ? [] : selection.trackList
    const all = [...selection.annotations, ...elsewhere]
    return [...new Map(all.map(({ group, name }) => [classKey({ group, name }), { group, name }])).values()]
  })

  /** Selected identities that are not in this frame, where a value would be for this frame alone. */
  absent = $derived.by<Track[]>(() => {
    if (studio.blind || this.overFrames || this.image) return []
    const here = new Set(selection.annotations.map((one) => trackKey(trackOf(one))))
    return selection.trackList.filter((track) => !here.has(trackKey(track)))
  })

  /** Whether choices are about the whole frame: always, where the schema has nothing to draw. */
  image = $derived(ui.imageSlot || (selection.empty && (draft.active || !ui.drawClass)))
  instanceChoices = $derived<Choice[]>(studio.project ? choices(studio.project.schema, this.selectedClasses) : [])
  imageChoices = $derived<Choice[]>(studio.project ? imageChoices(studio.project.schema) : [])
  current = $derived(this.image ? this.imageChoices : this.instanceChoices)

  /** The list at hand: what was picked, else the first attribute, else the class. */
  slot = $derived.by(() => {
    if (ui.slot === CLASS_SLOT) return CLASS_SLOT
    if (this.current.some((choice) => choice.attribute === ui.slot)) return ui.slot
    return this.current[0]?.attribute ?? CLASS_SLOT
  })

  /** The value that all selected things share; undefined where they differ or have none. */
  shared(attribute: string, image: boolean): string | undefined {
    if (hold.current?.attribute === attribute && hold.current.image === image) return hold.current.value
    if (draft.active && attribute in draft.values && image === this.image) return draft.values[attribute] ?? undefined
    if (image) return studio.imageValues(studio.shown)[attribute]
    const values = new Set(selection.annotations.map((one) => one.values[attribute]))
    return values.size === 1 ? [...values][0] : undefined
  }

  differs(attribute: string): boolean {
    return new Set(selection.annotations.map((one) => one.values[attribute])).size > 1
  }

  /** A value for the span being made, or for what is selected; then the next attribute is at hand, unless one was picked. */
  choose(attribute: string, value: string | null, image: boolean): void {
    if (draft.active) draft.choose(attribute, value)
    else if (image) setImageValues({ [attribute]: value })
    else setValues(selection.annotations, { [attribute]: value })
    const list = image ? this.imageChoices : this.instanceChoices
    const at = list.findIndex((choice) => choice.attribute === attribute)
    if (value !== null && !ui.pinned) ui.slot = list[at + 1]?.attribute ?? list[0]?.attribute ?? ''
  }

  chooseClass(of: ClassName): void {
    ui.newClass = of
    if (studio.blind && draft.active) draft.choose(CLASS_SLOT, of.name)
    else if (selection.annotations.length) classify(selection.annotations, of)
    ui.slot = ''
  }

  /** Whether a value is for more frames than the one in sight: a span is being made, or frames pass. */
  get overFrames(): boolean {
    return draft.active || this.holds
  }

  /** Whether a value is held instead of said of one frame: frames pass, and no span is being made. */
  get holds(): boolean {
    return (playback.playing || ui.scrubbing) && !draft.active
  }

  /** A digit: the nth entry of the list at hand. While frames pass it is held until the key is let go. */
  digit(place: number, key: string): void {
    const project = studio.project
    if (!project) return
    if (this.slot === CLASS_SLOT) {
      const of = classes(project.schema)[place]
      if (of) this.chooseClass(of)
      return
    }
    const choice = this.current.find((one) => one.attribute === this.slot)
    const value = choice?.values[place]
    if (!choice || value === undefined) return
    if (this.holds) hold.begin(choice.attribute, value, this.image, key)
    else this.choose(choice.attribute, value, this.image)
  }

  cycleSlot(by: number): void {
    const list = this.current.map((choice) => choice.attribute)
    if (!list.length) return
    const at = list.indexOf(this.slot)
    ui.slot = list[(at < 0 ? 0 : at + by + list.length) % list.length] ?? ''
    ui.pinned = true
  }

  clear(): void {
    if (this.slot !== CLASS_SLOT) this.choose(this.slot, null, this.image)
  }

  /** Something else is selected: begin with the first attribute again; a span keeps what fits the new selection. */
  selectionChanged(): void {
    ui.slot = ''
    ui.pinned = false
    for (const [attribute, value] of Object.entries(draft.values)) {
      if (attribute === CLASS_SLOT) continue
      const choice = this.current.find((one) => one.attribute === attribute)
      const fits = choice && (value === null || !choice.values.length || choice.values.includes(value))
      if (!fits) draft.forget(attribute)
    }
  }

  /** Another frame: too, but for a list picked by hand and a span being made. */
  frameChanged(): void {
    if (!ui.pinned && !draft.active && !playback.playing) ui.slot = ''
  }

  describe(tracks: Track[]): string {
    return tracks.map((track) => `${track.name} #${track.number ?? '–'}`).join(', ')
  }

  /** The thing in this frame that stands for the selection, for the identity menu. */
  get single() {
    const [one] = selection.annotations
    return selection.annotations.length === 1 && one ? { one, key: trackKey(trackOf(one)) } : null
  }
}

export const labelling = new Labelling()
