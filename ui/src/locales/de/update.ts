import { translation } from '../en/catalogue';

/** Newer versions of the app. */
export const update = translation({
  'update.title': 'Neue Versionen',
  'update.notAsked': 'Ponder sucht nur auf Wunsch nach neuen Versionen.',
  'update.ask': 'Nach neuer Version suchen',
  'update.asking': 'Suche nach neuer Version …',
  'update.newest': 'Das ist die neueste Version.',
  'update.available': 'Ponder {version} ist da',
  'update.install': 'Laden',
  'update.fetching': 'Die neue Version wird geladen',
  'update.stop': 'Stopp',
  'update.installed': 'Ponder {version} ist eingerichtet und gilt ab dem nächsten Start.',
  'update.restart': 'Jetzt starten',
  'update.notes': 'Was neu ist',
});
