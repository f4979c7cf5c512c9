/** What may be chosen for what is selected. */

import { IMAGE, type Schema, type Values } from './types'

export interface Choice {
  attribute: string
  /** Empty: free text. */
  values: string[]
}

export interface ClassName {
  group: string
  name: string
}

export function classKey({ group, name }: ClassName): string {
  return `${group}.${name}`
}

/** Every class that can be drawn, in the schema's order. */
export function classes(schema: Schema): ClassName[] {
  return Object.entries(schema.panel).flatMap(([group, members]) =>
    group === IMAGE ? [] : Object.keys(members).map((name) => ({ group, name })),
  )
}

/** The attributes that all the classes have, each with the values that all of them admit. */
export function choices(schema: Schema, of: ClassName[]): Choice[] {
  const members = unique(of).map(({ group, name }) => schema.panel[group]?.[name] ?? {})
  const [first, ...others] = members
  if (!first) return []
  return Object.entries(first)
    .filter(([attribute]) => others.every((other) => attribute in other))
    .map(([attribute, values]) => ({
      attribute,
      values: values.filter((value) => others.every((other) => !other[attribute]?.length || other[attribute].includes(value))),
    }))
}

export function imageChoices(schema: Schema): Choice[] {
  return choices(schema, schema.panel[IMAGE]?.[IMAGE] ? [{ group: IMAGE, name: IMAGE }] : [])
}

/** Admissible values whose triplet is no class of the label space, given the other values. */
export function outsideLabelSpace(schema: Schema, { name }: ClassName, values: Values, attribute: string): Set<string> {
  const known = schema.classes
  if (!known?.length || (attribute !== 'action' && attribute !== 'target')) return new Set()
  const own = known.filter(([tool]) => tool === name)
  const other = attribute === 'action' ? values.target : values.action
  const place = attribute === 'action' ? 1 : 2
  const possible = new Set(own.filter((one) => other === undefined || one[3 - place] === other).map((one) => one[place]))
  const listed = Object.values(schema.panel).flatMap((members) => members[name]?.[attribute] ?? [])
  return new Set(listed.filter((value) => !possible.has(value)))
}

/** Stored values that the schema lacks. */
export function inadmissible(schema: Schema, { group, name }: ClassName, values: Values): string[] {
  const member = schema.panel[group]?.[name]
  if (!member) return Object.keys(values)
  return Object.entries(values)
    .filter(([attribute, value]) => {
      const listed = member[attribute]
      return listed === undefined || (listed.length > 0 && !listed.includes(value))
    })
    .map(([attribute]) => attribute)
}

/** The listed attributes that have no value yet. */
export function missing(schema: Schema, { group, name }: ClassName, values: Values): string[] {
  return Object.entries(schema.panel[group]?.[name] ?? {})
    .filter(([attribute, listed]) => listed.length > 0 && values[attribute] === undefined)
    .map(([attribute]) => attribute)
}

function unique(of: ClassName[]): ClassName[] {
  return [...new Map(of.map((one) => [classKey(one), one])).values()]
}
