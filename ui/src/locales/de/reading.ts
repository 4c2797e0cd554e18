import { translation } from '../en/catalogue';

/** Reading all documents of a chat: its cost, its progress. */
export const reading = translation({
  'reading.parts': { one: '{count} Teil', other: '{count} Teilen' },
  'reading.cost': 'Liest {passages} in {parts}, etwa {tokens}',
  'reading.time': 'Geschätzte Dauer: {duration}',
  'reading.open': 'Alles lesen …',
  'reading.openNote': 'Für Nachrichten, die alle Dokumente brauchen, etwa Zählungen oder Zusammenfassungen.',
  'reading.title': 'Alle Dokumente lesen?',
  'reading.text': 'Das Modell liest jedes Dokument im Hintergrund und schreibt Notizen für die Nachricht. Seine Antwort beruht auf diesen Notizen.',
  'reading.remote': 'Alle Dokumente werden an den Anbieter dieses Modells gesendet.',
  'reading.noMessage': 'Zuerst eine Nachricht schreiben.',
  'reading.counting': 'Passagen werden gezählt …',
  'reading.confirm': 'Alles lesen',
  'reading.cancel': 'Abbrechen',
  'reading.progress': 'Alle Dokumente werden gelesen: {done} von {total}',
  'reading.begins': 'Alle Dokumente werden gelesen …',
  'reading.stop': 'Lesen beenden',
});
