/** Files to and from the person's disk. */

export function download(name: string, text: string, type = 'application/json'): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

/** The text of the chosen file; the field is emptied so that the same file can be chosen again. */
export async function chosenText(event: Event): Promise<{ name: string; text: string } | null> {
  const field = event.currentTarget as HTMLInputElement
  const file = field.files?.[0]
  if (!file) return null
  const text = await file.text()
  field.value = ''
  return { name: file.name, text }
}
