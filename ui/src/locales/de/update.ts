import { translation } from '../en/catalogue';

/** Newer versions of the app. */
export const update = translation({
  'update.title': 'Updates',
  'update.notAsked': 'Ponder sucht nur auf Wunsch nach Updates.',
  'update.ask': 'Nach Updates suchen',
  'update.asking': 'Suche nach Updates …',
  'update.newest': 'Ponder ist aktuell.',
  'update.available': 'Ponder {version} ist verfügbar',
  'update.install': 'Laden',
  'update.fetching': 'Update wird geladen',
  'update.stop': 'Abbrechen',
  'update.installed': 'Ponder {version} ist bereit. Ein Neustart aktualisiert.',
  'update.restart': 'Jetzt neu starten',
  'update.notes': 'Was neu ist',
});
