/** Texts about what an answer shows, diagrams and code, and about models that are looked for and removed. */
export const reading = {
  'code.save': 'Save',
  'code.saved': 'Saved as {name}',

  'diagram.draw': 'Draw',
  'diagram.drawing': 'Drawing…',
  'diagram.source': 'Source',
  'diagram.picture': 'A diagram',
  'diagram.failed': 'This diagram could not be drawn. Here is its source.',
  'diagram.notUnderstood': 'This diagram could not be drawn: line {line} is not understood. Here is its source.',
  'diagram.unknown': 'This diagram could not be drawn: its kind is not known. Here is its source.',
  'diagram.tooLarge': 'This diagram is too large to be drawn here. Here is its source.',

  'folders.choose': 'Choose…',
  'remove.removed': '{name} was removed.',
  'remove.chatTitle': '“{title}”',
} as const;
