import { translation } from '../en/catalogue';

/** Notes about the user, which models are told. */
export const notes = translation({
  'notes.title': 'Persönliche Notizen',
  'notes.about':
    'Modelle sehen diese Zeilen in jedem Chat außerhalb von Projekten. Modelle können Zeilen vorschlagen, die Sie bestätigen.',
  'notes.projectNote':
    'Modelle sehen diese Zeilen in jedem Chat dieses Projekts. Modelle können Zeilen vorschlagen, die Sie bestätigen.',
  'notes.loading': 'Notizen werden geladen …',
  'notes.none': 'Noch keine Notizen',
  'notes.text': 'Notiz',
  'notes.new': 'Neue Notiz',
  'notes.example': 'Ich verwende metrische Einheiten.',
  'notes.add': 'Hinzufügen',
  'notes.remove': 'Notiz „{text}“ löschen',
  'notes.removed': 'Notiz gelöscht',
  'notes.suggested': 'Von einem Modell vorgeschlagen',
});
