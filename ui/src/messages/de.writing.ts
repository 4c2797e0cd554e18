import { translation } from '.';

/** The texts about writing a question: what waits, what it costs, snippets. */
export const writing = translation({
  'queue.next': 'Danach:',
  'queue.attached': { one: '{count} Anhang', other: '{count} Anhänge' },
  'queue.edit': 'Nächste Frage bearbeiten',
  'queue.cancel': 'Nächste Frage nicht stellen',
  'queue.cancelled': 'Die nächste Frage wird nicht gestellt.',
  'queue.send': 'Nach dieser Antwort fragen',

  'composer.tokens': { one: '{count} Token', other: '{count} Tokens' },
  'composer.tokensFull': '{count} Tokens: mehr als die {free} freien',
  'composer.tokensHint': 'Was diese Frage vom Kontext des Modells belegt',

  'snippet.list': 'Textbausteine',
  'settings.page.snippets': 'Textbausteine',
  'settings.snippets.intro': 'Häufig geschriebene Texte. In einer Frage einen Schrägstrich und den Namen tippen, etwa /translate, dann die Eingabetaste.',
  'settings.snippets.name': 'Name',
  'settings.snippets.nameExample': 'translate',
  'settings.snippets.text': 'Text von {name}',
  'settings.snippets.textNew': 'Text',
  'settings.snippets.textExample': 'Ins Englische übersetzen:',
  'settings.snippets.add': 'Hinzufügen',
  'settings.snippets.remove': '{name} entfernen',
  'settings.snippets.removed': '/{name} wurde entfernt.',
  'settings.snippets.badName': 'Ein Name ist ein Wort aus Buchstaben, Ziffern, Binde- und Unterstrichen.',
  'settings.snippets.known': 'Es gibt schon einen Textbaustein mit diesem Namen.',
  'settings.snippets.none': 'Es gibt noch keine Textbausteine.',
});
