import { translation } from '../en/catalogue';

/** Writing a question: the field, the question that waits, snippets. */
export const composer = translation({
  'composer.placeholder': 'Alles fragen',
  'composer.label': 'Frage',
  'composer.send': 'Senden',
  'composer.stop': 'Stopp',
  'composer.tokens': { one: '{count} Token', other: '{count} Tokens' },
  'composer.tokensFull': '{count} Tokens: mehr als die {free} freien',
  'composer.tokensHint': 'Was diese Frage vom Kontext des Modells belegt',

  'queue.next': 'Danach:',
  'queue.attached': { one: '{count} Anhang', other: '{count} Anhänge' },
  'queue.edit': 'Nächste Frage bearbeiten',
  'queue.cancel': 'Nächste Frage nicht stellen',
  'queue.cancelled': 'Die nächste Frage wird nicht gestellt.',
  'queue.send': 'Nach dieser Antwort fragen',

  'snippet.list': 'Textbausteine',
});
