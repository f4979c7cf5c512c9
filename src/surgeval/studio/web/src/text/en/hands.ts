export const hands = {
  clearFlags: 'Clear all',
  clearFlagsHint: 'Clear the flags of the marked range, or of the whole video',
  setNumberRange: 'Set number in frames {first}–{last} only',
  unsent: '{count} {count|edit|edits} of a tab that was closed did not reach the server.',
  unsentSend: 'Send them now',
  unsentDiscard: 'Discard them',
  unsentSent: '{count} {count|edit was|edits were} sent.',
}
