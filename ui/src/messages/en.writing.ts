/** The texts about writing a question: what waits, what it costs, snippets. */
export const writing = {
  'queue.next': 'Next:',
  'queue.attached': { one: '{count} attachment', other: '{count} attachments' },
  'queue.edit': 'Edit the next question',
  'queue.cancel': 'Do not ask the next question',
  'queue.cancelled': 'The next question will not be asked.',
  'queue.send': 'Ask after this answer',

  'composer.tokens': { one: '{count} token', other: '{count} tokens' },
  'composer.tokensFull': '{count} tokens: more than the {free} that are free',
  'composer.tokensHint': 'What this question takes of the model’s context',

  'snippet.list': 'Snippets',
  'settings.page.snippets': 'Snippets',
  'settings.snippets.intro': 'Texts that you write often. Type a slash and the name in a question, such as /translate, and press Enter.',
  'settings.snippets.name': 'Name',
  'settings.snippets.nameExample': 'translate',
  'settings.snippets.text': 'Text of {name}',
  'settings.snippets.textNew': 'Text',
  'settings.snippets.textExample': 'Translate this into German:',
  'settings.snippets.add': 'Add',
  'settings.snippets.remove': 'Remove {name}',
  'settings.snippets.removed': '/{name} was removed.',
  'settings.snippets.badName': 'A name is one word of letters, digits, dashes and underscores.',
  'settings.snippets.known': 'There is a snippet of this name.',
  'settings.snippets.none': 'There are no snippets yet.',
} as const;
