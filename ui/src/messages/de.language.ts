import { translation } from '.';

/** Texts about the language of the windows. */
export const language = translation({
  'settings.language': 'Sprache',
  'settings.language.text': 'Gilt für die Fenster und Menüs von Ponder. Was Modelle schreiben, ändert sich nicht.',
  'settings.language.system': 'Wie das System',
});
