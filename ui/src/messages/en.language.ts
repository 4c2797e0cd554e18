/** Texts about the language of the windows. */
export const language = {
  'settings.language': 'Language',
  'settings.language.text': 'Of Ponder’s windows and menus. What models write does not change.',
  'settings.language.system': 'As the system',
} as const;
