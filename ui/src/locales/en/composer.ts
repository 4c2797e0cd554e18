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
  'composer.resources': 'From a server…',
  'composer.compare': 'Compare responses…',
  'composer.tools': 'Tools…',
  'composer.budget': 'Thinking budget…',

  'resources.title': 'Attach from a Server',
  'resources.search': 'Search resources',
  'resources.asking': 'Asking the servers…',
  'resources.none': 'No server that is on has resources. Servers are turned on under Settings › Tools.',
  'resources.notFound': 'Nothing matches.',
  'resources.attach': 'Attach',
  'resources.more': { one: '{count} more, which you can search for', other: '{count} more, which you can search for' },

  'prompts.more': 'Ask servers for prompts…',
  'prompts.optional': 'optional',
  'prompts.insert': 'Insert',

  'toolsChanged.note': 'Tools changed: {list}',
  'toolsChanged.added': '{name} is new',
  'toolsChanged.removed': '{name} is off',
  'toolsChanged.changed': '{name} has a new description',
  'toolsChanged.use': 'Use the new tools',
  'toolsChanged.cost': 'The model then reads the chat again.',
} as const;
