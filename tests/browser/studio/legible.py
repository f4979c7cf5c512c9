"""Whether the text of a page can be read: its contrast, and whether any of it is cut off."""

from __future__ import annotations

from playwright.sync_api import Page

# Text against what is painted behind it: all that is in sight and is no drawing, as WCAG counts it.
CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number)
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  const light = ([r, g, b]) => [r, g, b].map((c) => linear(c / 255))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0)
  const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map((k) => top[k] * a + under[k] * (1 - a)) }
  const ground = (node) => {
    const layers = []
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor)
      if ((colour[3] ?? 1) > 0) layers.push(colour)
      if ((colour[3] ?? 1) === 1) break
    }
    return layers.reduceRight((under, top) => over(top, under), [255, 255, 255])
  }
  const poor = []
  for (const node of document.querySelectorAll('body *')) {
    if (node.closest('svg, option, [data-testid=stage]') || !node.checkVisibility()) continue
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())
    if (!own && !(node instanceof HTMLInputElement && node.type !== 'color' && node.type !== 'range')) continue
    const behind = ground(node)
    const [a, b] = [light(over(parse(getComputedStyle(node).color), behind)), light(behind)].sort((x, y) => y - x)
    const ratio = (a + 0.05) / (b + 0.05)
    const name = `${node.tagName} ${node.dataset.testid ?? ''} ${node.textContent.trim().slice(0, 30)}`
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${name}`)
  }
  return poor
}"""

# Text that is wider than its box, unless it is meant to end in dots; and things that reach past the window.
CUT = """() => {
  const bad = []
  for (const node of document.querySelectorAll('body *')) {
    if (node.closest('svg, option') || !node.checkVisibility()) continue
    const style = getComputedStyle(node)
    const name = `${node.tagName} ${node.dataset.testid ?? node.className} ${node.textContent.trim().slice(0, 40)}`
    const scrolls = ['auto', 'scroll'].includes(style.overflowX)
    if (node instanceof HTMLSelectElement && node.dataset.testid !== 'video') {
      const ruler = document.createElement('canvas').getContext('2d')
      ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`
      const widest = Math.max(...[...node.options].map((option) => ruler.measureText(option.text).width))
      if (widest + 2 * parseFloat(style.paddingLeft) + 16 > node.clientWidth) bad.push(`select ${name}`)
    }
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth && !scrolls && style.textOverflow !== 'ellipsis'
        && style.display !== 'inline' && !(node instanceof HTMLInputElement)) bad.push(`wide ${name}`)
    if (node instanceof HTMLInputElement && node.placeholder) {
      const ruler = document.createElement('canvas').getContext('2d')
      ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`
      const room = node.clientWidth - 2 * parseFloat(style.paddingLeft)
      if (ruler.measureText(node.placeholder).width > room) bad.push(`placeholder ${name} ${node.placeholder}`)
    }
    const narrow = node.scrollWidth > node.clientWidth && style.textOverflow === 'ellipsis'
    if (narrow && node.closest('[data-testid=schema-panel]')) bad.push(`dots ${name}`)
    const at = node.getBoundingClientRect()
    const past = at.width && (at.right > innerWidth + 1 || at.left < -1)
    if (past && !node.closest('[data-testid=stage]')) bad.push(`past ${name}`)
  }
  return bad
}"""


def faults(page: Page) -> list[str]:
    """What cannot be read well, and what is cut off."""
    found: list[str] = page.evaluate(CONTRAST) + page.evaluate(CUT)
    return found
