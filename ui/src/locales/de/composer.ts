import { translation } from '../en/catalogue';

/** Writing a question: the field, the question that waits, snippets. */
export const composer = translation({
  'composer.placeholder': 'Alles fragen',
  'composer.label': 'Nachricht',
  'composer.send': 'Senden',
  'composer.stop': 'Stopp',
  'composer.tokens': { one: '{count} Token', other: '{count} Tokens' },
  'composer.tokensFull': '{count} Tokens, nur {free} frei',
  'composer.tokensHint': 'Vom Kontext durch diese Nachricht belegt',

  'queue.next': 'Als Nächstes',
  'queue.attached': { one: '{count} Anhang', other: '{count} Anhänge' },
  'queue.edit': 'Wartende Nachricht bearbeiten',
  'queue.cancel': 'Aus der Warteschlange entfernen',
  'queue.cancelled': 'Aus der Warteschlange entfernt.',
  'queue.send': 'Nach dieser Antwort senden',

  'snippet.list': 'Textbausteine',
  'composer.add': 'Hinzufügen',
  'composer.attach': 'Dateien anhängen …',
  'composer.resources': 'Von einem Server …',
  'composer.documents': 'Dokumente …',
  'composer.compare': 'Antworten vergleichen …',
  'composer.tools': 'Werkzeuge …',
  'composer.budget': 'Denkbudget …',

  'resources.title': 'Von einem Server anhängen',
  'resources.search': 'Ressourcen durchsuchen',
  'resources.asking': 'Server werden gefragt …',
  'resources.none':
    'Kein eingeschalteter Server hat Ressourcen. Server werden unter Einstellungen › Werkzeuge eingeschaltet.',
  'resources.notFound': 'Nichts passt.',
  'resources.attach': 'Anhängen',
  'resources.more': { one: '{count} weitere; danach suchen', other: '{count} weitere; danach suchen' },

  'prompts.more': 'Server nach Prompts fragen …',
  'prompts.optional': 'optional',
  'prompts.insert': 'Einfügen',

  'toolsChanged.note': 'Werkzeuge geändert: {list}',
  'toolsChanged.added': '{name} ist neu',
  'toolsChanged.removed': '{name} ist aus',
  'toolsChanged.changed': '{name} ist neu beschrieben',
  'toolsChanged.use': 'Neue Werkzeuge verwenden',
  'toolsChanged.cost': 'Der Chat wird dann neu gelesen.',
});
