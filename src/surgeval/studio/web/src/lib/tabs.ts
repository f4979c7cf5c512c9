/** Which tabs of the studio are open in this browser. */

const LOCK = 'surgeval studio tab: '

/** Each tab holds a lock of its name as long as it lives. Empty where the browser has no locks. */
export async function openTabs(own: string): Promise<Set<string>> {
  const locks = (navigator as { locks?: LockManager }).locks // absent on a plain-text address of another machine
  if (!locks) return new Set()
  void locks.request(`${LOCK}${own}`, () => new Promise(() => undefined))
  const { held = [] } = await locks.query()
  return new Set(held.flatMap(({ name }) => (name?.startsWith(LOCK) ? name.slice(LOCK.length) : [])))
}
