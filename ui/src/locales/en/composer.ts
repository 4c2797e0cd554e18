/** Writing a question: the field, the question that waits, snippets. */
export const composer = {
  'composer.placeholder': 'Ask anything',
  'composer.label': 'Your question',
  'composer.send': 'Send',
  'composer.stop': 'Stop',
  'composer.tokens': { one: '{count} token', other: '{count} tokens' },
  'composer.tokensFull': '{count} tokens: more than the {free} that are free',
  'composer.tokensHint': 'What this question takes of the model’s context',

  'queue.next': 'Next:',
  'queue.attached': { one: '{count} attachment', other: '{count} attachments' },
  'queue.edit': 'Edit the next question',
  'queue.cancel': 'Do not ask the next question',
  'queue.cancelled': 'The next question will not be asked.',
  'queue.send': 'Ask after this answer',

  'snippet.list': 'Snippets',
} as const;
