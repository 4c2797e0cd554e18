/** Writing a question: the field, the question that waits, snippets. */
export const composer = {
  'composer.placeholder': 'Ask anything',
  'composer.label': 'Message',
  'composer.send': 'Send',
  'composer.stop': 'Stop',
  'composer.tokens': { one: '{count} token', other: '{count} tokens' },
  'composer.tokensFull': '{count} tokens, only {free} free',
  'composer.tokensHint': 'Context used by this message',

  'queue.next': 'Up next',
  'queue.attached': { one: '{count} attachment', other: '{count} attachments' },
  'queue.edit': 'Edit queued message',
  'queue.cancel': 'Remove from queue',
  'queue.cancelled': 'Removed from the queue.',
  'queue.send': 'Send after this response',

  'snippet.list': 'Snippets',
  'composer.add': 'Add',
  'composer.attach': 'Attach files…',
  'composer.compare': 'Compare responses…',
  'composer.tools': 'Tools…',
  'composer.budget': 'Thinking budget…',
} as const;
