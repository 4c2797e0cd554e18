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
  'composer.compare': 'Antworten vergleichen …',
  'composer.tools': 'Werkzeuge …',
  'composer.budget': 'Denkbudget …',
});
