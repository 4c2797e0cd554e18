/** Notes about the user, which models are told. */
export const notes = {
  'notes.title': 'Personal notes',
  'notes.about': 'Models see these lines in every chat that is in no project. Models can suggest lines, which you confirm.',
  'notes.projectNote': 'Models see these lines in every chat of this project. Models can suggest lines, which you confirm.',
  'notes.loading': 'Loading notes…',
  'notes.none': 'No notes yet',
  'notes.text': 'Note',
  'notes.new': 'New note',
  'notes.example': 'I prefer metric units.',
  'notes.add': 'Add',
  'notes.remove': 'Delete note “{text}”',
  'notes.removed': 'Note deleted',
  'notes.suggested': 'Suggested by a model',
} as const;
