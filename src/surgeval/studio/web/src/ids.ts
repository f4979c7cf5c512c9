/** Names by which tests find things; dynamic ones are functions. Every interactive element has one. */
export const ids = {
  app: 'app', video: 'video', frame: 'frame-number', previous: 'previous-frame', next: 'next-frame', play: 'play',
  speed: 'speed', mode: 'mode', shape: 'shape', undo: 'undo', redo: 'redo', fit: 'fit', zoomIn: 'zoom-in',
  zoomOut: 'zoom-out', flag: 'flag', language: 'language', settings: 'settings-open', help: 'help-open',
  search: 'search', searchResult: (place: number) => `search-result-${place}`, importSchema: 'import-schema',
  schemaFile: 'schema-file', saveState: 'save-state', message: 'message', messageClose: (kind: string) => `message-close-${kind}`,
  banner: 'banner', projectMenu: 'project-menu', menuEntry: (name: string) => `menu-${name}`, name: 'your-name', nameStart: 'your-name-start',

  stage: 'stage', overlay: 'overlay', box: (id: string) => `box-${id}`, label: (id: string) => `label-${id}`,
  handle: (name: string) => `handle-${name}`, vertex: (polygon: number, vertex: number) => `vertex-${polygon}-${vertex}`,
  middle: (polygon: number, after: number) => `middle-${polygon}-${after}`, drawing: 'drawing',

  objectList: 'object-list', object: (id: string) => `object-${id}`, filter: 'object-filter',
  copyPrevious: 'copy-previous', duplicate: 'duplicate', remove: 'remove', trackMenu: 'track-menu-open',

  panel: 'schema-panel', classChoice: (name: string) => `class-${name}`, attribute: (name: string) => `attribute-${name}`,
  value: (attribute: string, value: string) => `value-${attribute}-${value}`,
  text: (attribute: string) => `text-${attribute}`, clear: (attribute: string) => `clear-${attribute}`,
  imagePanel: 'image-panel',

  spanBar: 'span-bar', spanStart: 'span-start', spanEnd: 'span-end', spanFirst: 'span-first', spanLast: 'span-last',
  spanConfirm: 'span-confirm', spanCancel: 'span-cancel', spanPreview: 'span-preview', spanWhat: 'span-what',
  spanValues: 'span-values', hold: 'hold',
  spanLoop: 'span-loop', spanDeselect: 'span-deselect',

  timeline: 'timeline', timelineCanvas: 'timeline-canvas',

  tab: (name: string) => `tab-${name}`, spanItem: (id: string) => `span-${id}`, spanCut: 'span-cut',
  spanJoin: 'span-join', spanDelete: 'span-delete', edgeFirst: 'edge-first', edgeLast: 'edge-last',
  trackItem: (key: string) => `track-${key}`,
  problem: (place: number) => `problem-${place}`, problemRule: 'problem-rule', findProblems: 'find-problems',
  flagItem: (frame: number) => `flag-${frame}`, flagClear: (frame: number) => `flag-clear-${frame}`,
  exportFlags: 'export-flags', flagBadge: 'flag-badge',

  proposals: 'proposals', threshold: 'threshold', accept: 'accept', reject: 'reject', acceptAll: 'accept-all',
  rejectAll: 'reject-all',

  trackDialog: 'track-menu', trackNumber: 'track-number', trackSet: 'track-set',
  trackSwap: (number: number) => `track-swap-${number}`, trackMerge: (number: number) => `track-merge-${number}`,
  trackSplit: 'track-split', trackExtend: 'track-extend', interpolate: 'interpolate', pasteRange: 'paste-range',

  replaceDialog: 'replace', replaceWhat: 'replace-what', replaceOld: 'replace-old', replaceNew: 'replace-new',
  replacePreview: 'replace-preview', replaceApply: 'replace-apply',

  flagDialog: 'flag-dialog', flagReason: (name: string) => `flag-reason-${name}`, flagNote: 'flag-note',

  settingsDialog: 'settings', settingsClose: 'settings-close', slider: (name: string) => `slider-${name}`,
  colour: (key: string) => `colour-${key}`, settingsExport: 'settings-export', settingsImport: 'settings-import',
  settingsFile: 'settings-file', settingsReset: 'settings-reset',

  helpDialog: 'help', helpClose: 'help-close', key: (action: string) => `key-${action}`, keysReset: 'keys-reset',

  exportDialog: 'export', exportFormat: 'export-format', exportImages: 'export-images', exportProposals: 'export-proposals',
  exportNoProblems: 'export-no-problems', exportMerge: 'export-merge', exportRules: 'export-rules',
  exportRulesFile: 'export-rules-file', exportLosses: 'export-losses', exportMerged: 'export-merged',
  exportCounts: 'export-counts', exportName: 'export-name', exportApply: 'export-apply', exportStatus: 'export-status',
  exportDownload: (name: string) => `export-download-${name}`,
  importDialog: 'import', importFrom: 'import-from', importUpload: 'import-upload', importFile: 'import-file',
  importReplace: 'import-replace', importCounts: 'import-counts', importMissed: 'import-missed',
  importLacking: 'import-lacking', importLosses: 'import-losses', importProblems: 'import-problems',
  importApply: 'import-apply', importStatus: 'import-status',
  overridden: (id: string) => `overridden-${id}`, flagsClear: 'flags-clear', trackRange: 'track-range',
  rate: 'rate', refused: 'refused', refusedClose: 'refused-close',
  unsent: 'unsent', unsentSend: 'unsent-send', unsentDiscard: 'unsent-discard',
  filterClass: 'filter-class', nextMatch: 'next-match', hiddenBadge: 'hidden-badge', theme: 'theme',
  show: (name: string) => `show-${name}`, showClass: (key: string) => `show-class-${key}`,

  questions: 'questions', questionClose: 'questions-close', questionRole: 'question-role', questionEach: 'question-each',
  questionPrevious: 'question-previous', questionNext: 'question-next',
  questionNextOpen: 'question-next-open', questionText: 'question-text', option: (number: number) => `option-${number}`,
  questionPicture: 'question-picture', thumbnail: (number: number) => `thumbnail-${number}`, questionLook: 'question-look',
  questionPlay: 'question-play', questionGaze: 'question-gaze', verdict: (name: string) => `verdict-${name}`,
  questionComment: 'question-comment', questionSave: 'question-save', questionCancel: 'question-cancel',
  questionLink: (kind: string) => `question-link-${kind}`, questionProgress: 'question-progress',
  questionMine: 'question-mine', agreementOpen: 'agreement-open', agreementTable: 'agreement-table',
  agreementWaits: 'agreement-waits',

  reviewChip: 'review-chip', reviewDialog: 'review', reviewClose: 'review-close', reviewRound: 'review-round',
  reviewProgress: 'review-progress', reviewMark: 'review-mark', reviewNext: 'review-next', roundTitle: 'round-title',
  roundPeople: 'round-people', roundBegin: 'round-begin',

  studyDialog: 'study', studyClose: 'study-close', studyChoice: 'study-choice', studyNew: 'study-new',
  studyRemove: 'study-remove', studyName: 'study-name', studyPeople: 'study-people', studyCount: 'study-count',
  studyLength: 'study-length', studySeed: 'study-seed', studyDrawn: 'study-drawn', studyMake: 'study-make',
  studyAnswered: (name: string) => `study-answered-${name}`, studyEnter: (name: string) => `study-enter-${name}`,
  studyLink: (name: string) => `study-link-${name}`,
  studyList: 'study-list', studyAfter: 'study-after', studyTable: 'study-table',
  studyLog: (as: string) => `study-log-${as}`, kappas: 'kappas',
  kappa: (component: string, who: string) => `kappa-${component}-${who}`, kappasBetween: 'kappas-between',
  kappaBetween: (one: string, other: string, component: string) => `kappa-${one}-${other}-${component}`,

  disagreements: 'disagreements', disagreement: (id: string) => `disagreement-${id}`, disagreeOpen: 'disagree-open',
  disagreeUnanswered: 'disagree-unanswered', decideKeep: 'decide-keep', decideOther: 'decide-other',
  decideAnswer: (who: string) => `decide-answer-${who}`, otherName: 'other-name', otherAction: 'other-action',
  otherTarget: 'other-target', decideConfirm: 'decide-confirm',

  blind: 'blind', blindProgress: 'blind-progress', blindNext: 'blind-next', blindLeave: 'blind-leave',
  schemaDialog: 'schema-dialog', schemaUsed: (name: string) => `schema-used-${name}`, schemaBuiltin: (name: string) => `schema-${name}`, schemaImport: 'schema-import',
  schemaSummary: 'schema-summary', schemaError: 'schema-error', schemaUse: 'schema-use',
  mismatches: 'mismatches', mismatch: (place: number) => `mismatch-${place}`,
  mismatchTo: (place: number) => `mismatch-to-${place}`, mismatchApply: (place: number) => `mismatch-apply-${place}`,
  mismatchAll: 'mismatch-all', guidelinePicture: 'guideline-picture',
  absent: 'absent', skipped: 'skipped', skippedClose: 'skipped-close', imageStranger: (attribute: string) => `image-stranger-${attribute}`,

  mergeDialog: 'merging', mergeBuiltin: 'merge-builtin', mergeImport: 'merge-import', mergeFile: 'merge-file',
  mergeRule: (place: number) => `merge-rule-${place}`, mergeError: 'merge-error', mergeApply: 'merge-apply',

  numberDialog: 'numbering', numberRule: 'number-rule', numberSetting: (name: string) => `number-${name}`,
  numberLevel: (place: number) => `number-level-${place}`, numberRange: (name: string) => `number-range-${name}`,
  numberPreview: 'number-preview', numberApply: 'number-apply', numberTrack: (key: string) => `number-track-${key}`,

  proposeDialog: 'proposing', proposeWho: 'propose-who', proposePath: 'propose-path', proposeLeast: 'propose-least',
  proposeReplace: 'propose-replace', proposeRange: (name: string) => `propose-range-${name}`,
  proposeBegin: 'propose-begin', proposeEnd: 'propose-end', proposeState: 'propose-state', jobLine: 'job-line',
  studyEmptySegments: 'study-empty-segments',

  problemsOld: 'problems-old', decideWhere: 'decide-where',
} as const
