import { translation } from '.';

/** What the page about Ponder says. */
export const about = translation({
  'settings.page.about': 'Über',
  'settings.about.version': 'Version {version}',
  'settings.about.licence': 'Freie Software unter der Apache-Lizenz 2.0. © 2026 The Ponder authors.',
  'settings.about.built': 'Gebaut mit',
  'settings.about.builtText': 'In Ponder steckt die Arbeit vieler anderer. Jeder Teil hat seine eigene Lizenz; ein Klick zeigt sie.',
  'settings.about.search': 'Namen und Lizenzen suchen',
  'settings.about.none': 'Nichts hat diesen Namen oder diese Lizenz.',
  'settings.about.all': { one: '{count} anzeigen', other: 'Alle {count} anzeigen' },
  'settings.about.noList': 'Dieser Build entstand ohne die Liste der Lizenzen; die Pakete enthalten sie.',
});
